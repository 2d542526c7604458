// Fetches critical objects in byte ranges over several origins of one host, and puts them together: each origin is a
// connection of its own. `critical.json` has the objects and their lengths, which a page's build knows.
//
// The servers must allow it: access-control-allow-origin, and etag among access-control-expose-headers. Pieces of
// different versions are never put together; whatever goes wrong, the object is fetched whole.
const ports = new URLSearchParams(location.search).get('ports').split(',');
let lengths = {};

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', event => event.waitUntil(self.clients.claim()));

async function lengthOf(path) {
  if (!(path in lengths)) lengths = await (await fetch('critical.json')).json();
  return lengths[path];
}

async function piece(url, from, to) {
  const options = { headers: { range: `bytes=${from}-${to}` }, mode: 'cors', credentials: 'omit', cache: 'no-store' };
  const response = await fetch(url, options);
  if (response.status !== 206) throw new Error(`${url}: ${response.status}`);
  return { etag: response.headers.get('etag'), body: await response.arrayBuffer() };
}

async function inPieces(url) {
  const length = await lengthOf(url.pathname);
  if (!length) throw new Error('not a critical object');
  const pieces = await Promise.all(ports.map((port, index) => {
    const at = Object.assign(new URL(url), { port });
    const [from, end] = [index, index + 1].map(part => Math.floor(length * part / ports.length));
    return piece(at, from, end - 1);
  }));
  const { etag } = pieces[0];
  if (!etag || pieces.some(one => one.etag !== etag)) throw new Error('pieces of different versions');
  if (pieces.reduce((sum, one) => sum + one.body.byteLength, 0) !== length) throw new Error('another length');
  return new Response(new Blob(pieces.map(one => one.body)), { headers: { 'x-pieces': pieces.length } });
}

self.addEventListener('fetch', event => {
  const url = new URL(event.request.url);
  if (event.request.method !== 'GET' || url.search !== '?split') return;
  event.respondWith(inPieces(url).catch(() => fetch(event.request)));
});
