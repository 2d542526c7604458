#!/bin/sh
# Loads the page in Chromium over an emulated path, from three edges at its far end, and prints its report.
# Usage: run.sh POSTHASTE PATH ROUNDS [BYTES] [PROFILE]
set -eu
program=$(realpath "$1") path=$2 rounds=$3 bytes=${4:-2000000} profile=${5:-cubic}
case $path in *.toml) path=$(realpath "$path") ;; esac
source=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir www home
cp "$source/page.html" "$source/sw.js" www/
head -c "$bytes" /dev/urandom >www/critical.bin
echo "{\"/critical.bin\": $bytes}" >www/critical.json
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 7 -subj /CN=posthaste.test \
  -addext subjectAltName=DNS:posthaste.test -keyout key.pem -out cert.pem 2>/dev/null
spki=$(openssl x509 -in cert.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64)
for port in 4433 4434 4435; do
  cat >edge-$port.toml <<END
[edge]
listen = "0.0.0.0:$port"
profile = "$profile"
[site."posthaste.test"]
certificate = { chain = "cert.pem", key = "key.pem" }
files = "www"
headers = { set = { access-control-allow-origin = "*", access-control-expose-headers = "etag" } }
END
done
cat >far.sh <<END
for port in 4433 4434 4435; do '$program' edge --config edge-\$port.toml --json >log-\$port 2>err-\$port & done
wait
END
cat >near.sh <<END
origins=posthaste.test:4433,posthaste.test:4434,posthaste.test:4435
while ! [ -s log-4433 ] || ! [ -s log-4434 ] || ! [ -s log-4435 ]; do sleep 0.1; done
HOME=$folder/home chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
  --user-data-dir="$folder/profile" --origin-to-force-quic-on=\$origins --ignore-certificate-errors-spki-list=$spki \
  "--host-resolver-rules=MAP posthaste.test \$POSTHASTE_FAR" \
  'https://posthaste.test:4433/page.html?ports=4433,4434,4435&rounds=$rounds' >browser 2>&1 &
browser=\$!
for second in \$(seq 600); do grep -q /report log-4433 && break; sleep 0.1; done
kill \$browser
wait \$browser || true
END
"$program" emulate -q --isolate --path "$path" --far 'sh far.sh' -- sh near.sh || echo "void or failed: $?"
grep -o 'report?[^"]*' log-4433 || { echo "no report"; cat err-* log-*; tail -5 browser; }
for port in 4433 4434 4435; do
  echo "$port: $(grep -c '"status":206' log-$port || true) pieces, protocols $(grep -o '"protocol":"[^"]*"' log-$port | sort | uniq -c | tr '\n' ' ')"
done
