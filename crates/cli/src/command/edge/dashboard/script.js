'use strict';
const EVERY = 2000, KEPT = 60, WINDOW = 15;
const at = id => document.getElementById(id);
const samples = [];

const digits = (value, places) => value.toLocaleString('en', { maximumFractionDigits: places });
const whole = value => digits(value, 0);
const percent = share => share === null ? '–' : digits(share * 100, share < 0.01 ? 2 : 1) + ' %';
const seconds = value => value === null ? '–' : value < 0.01 ? digits(value * 1000, value < 0.001 ? 2 : 1) + ' ms'
  : value < 1 ? whole(value * 1000) + ' ms' : digits(value, 2) + ' s';
const scaled = (value, units, step) => {
  let unit = 0;
  while (value >= step && unit < units.length - 1) { value /= step; unit++; }
  return digits(value, value < 10 ? 1 : 0) + ' ' + units[unit];
};
const bytes = value => scaled(value, ['B', 'kB', 'MB', 'GB', 'TB'], 1000);
const bits = value => scaled(value, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'], 1000);
const span = value => {
  const [d, h, m] = [value / 86400, value / 3600 % 24, value / 60 % 60].map(Math.floor);
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min ${Math.floor(value % 60)} s` : Math.floor(value) + ' s';
};

function node(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

/* A row: its heading, then cells that are texts, numbers in an array, or nodes. */
function row(heading, cells) {
  const made = node('tr'), head = node('th', heading);
  head.scope = 'row';
  made.append(head, ...cells.map(cell => {
    if (Array.isArray(cell)) return node('td', cell[0], 'number');
    if (typeof cell === 'string') return node('td', cell);
    const td = node('td');
    td.append(cell);
    return td;
  }));
  return made;
}

function fill(body, rows, columns, empty) {
  if (!rows.length && empty) {
    const made = node('tr'), only = node('td', empty, 'none');
    only.colSpan = columns;
    made.append(only);
    rows = [made];
  }
  body.replaceChildren(...rows);
}

/* The figures of the tiles: a value for each sample, from it and from one up to half a minute earlier. */
const per = (now, before, get) => before ? (get(now) - get(before)) / (now.at - before.at) : null;
const part = (now, before, get, of) => {
  const all = before ? of(now) - of(before) : 0;
  return all > 0 ? (get(now) - get(before)) / all : null;
};
const TILES = [
  ['requests', 'Requests per second', (n, b) => per(n, b, s => s.requests.all), v => digits(v, 1),
    s => `${whole(s.requests.all)} since the start, ${whole(s.requests.by_status['5xx'] || 0)} with status 5xx`],
  ['share', 'Share of HTTP/3', (n, b) => part(n, b, s => s.requests.by_protocol.h3 || 0, s => s.requests.all), percent,
    s => `${percent(s.requests.http3_share)} since the start`],
  ['rtt', 'Round-trip time', n => n.http3.rtt_median, seconds,
    s => `median of open HTTP/3 connections, 95th percentile ${seconds(s.http3.rtt_p95)}`],
  ['loss', 'Packets lost', (n, b) => part(n, b, s => s.http3.packets_lost, s => s.http3.packets_sent), percent,
    s => `${percent(s.http3.packets_sent ? s.http3.packets_lost / s.http3.packets_sent : null)} since the start (QUIC)`],
  ['rate', 'Response bodies', (n, b) => per(n, b, s => 8 * s.requests.response_bytes), bits,
    s => `${bytes(s.requests.response_bytes)} since the start, all versions`],
  ['connections', 'HTTP/3 connections', n => n.http3.open, whole,
    s => `${whole(s.http3.connections)} since the start, ${whole(s.http3.resumed)} resumed, ${whole(s.http3.early_data)} with 0-RTT`],
];

function tile([id, title]) {
  const made = node('div', undefined, 'tile');
  const chart = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  chart.setAttribute('viewBox', '0 0 120 32');
  chart.setAttribute('preserveAspectRatio', 'none');
  chart.setAttribute('role', 'img');
  for (const part of ['area', 'line']) {
    const path = document.createElementNS(chart.namespaceURI, 'path');
    path.setAttribute('class', part);
    chart.append(path);
  }
  made.append(node('h3', title), node('p', '–', 'value'), node('p', '', 'more'), chart);
  made.id = id;
  return made;
}

function draw(chart, values, format) {
  const known = values.filter(value => value !== null);
  const most = Math.max(...known, 0) || 1;
  let line = '', area = '', from = 0, x = 0, pen = false;
  const end = () => { if (pen) area += `L${x} 31L${from} 31Z`; };
  values.forEach((value, i) => {
    if (value === null) { end(); pen = false; return; }
    x = 120 - (values.length - 1 - i) * 120 / (KEPT - 1);
    if (!pen) from = x;
    const step = `${pen ? 'L' : 'M'}${x.toFixed(1)} ${(30 - 27 * value / most).toFixed(1)}`;
    line += step; area += step; pen = true;
  });
  end();
  chart.querySelector('.line').setAttribute('d', line);
  chart.querySelector('.area').setAttribute('d', area);
  chart.setAttribute('aria-label', known.length ? `last two minutes: from ${format(Math.min(...known))} to ${format(Math.max(...known))}` : 'nothing yet');
}

function tiles() {
  const last = samples.at(-1);
  for (const [id, , value, format, more] of TILES) {
    const values = samples.map((sample, i) => value(sample, i > 0 ? samples[Math.max(0, i - WINDOW)] : null));
    const own = at(id);
    own.querySelector('.value').textContent = values.at(-1) === null ? '–' : format(values.at(-1));
    own.querySelector('.more').textContent = more(last);
    draw(own.querySelector('svg'), values, format);
  }
}

function times(status) {
  const sizes = status.times.map((it, i) => {
    const size = bytes => bytes >= 1 << 20 ? (bytes >> 20) + ' MiB' : (bytes >> 10) + ' KiB';
    const next = status.times[i + 1];
    return it.from === 0 ? 'below ' + size(next.from) : next ? `${size(it.from)} to ${size(next.from)}` : 'from ' + size(it.from);
  });
  for (const [id, title, end, none] of [
    ['times-both', 'Clients that came over TCP and over HTTP/3', '_of_both', 'no client has come over both yet'],
    ['times-all', 'All clients', '', 'no response yet'],
  ]) {
    const head = node('tr'), group = node('th', title), rows = [head];
    group.scope = 'rowgroup';
    group.colSpan = 7;
    head.append(group);
    status.times.forEach((it, i) => {
      const [tcp, http3] = [it['tcp' + end], it['http3' + end]];
      if (tcp.count + http3.count === 0) return;
      rows.push(row(sizes[i], [tcp, http3].flatMap(m => [[whole(m.count)], [seconds(m.first_byte)], [seconds(m.whole)]])));
    });
    if (rows.length === 1) {
      const only = node('tr'), cell = node('td', none, 'none');
      cell.colSpan = 7;
      only.append(cell);
      rows.push(only);
    }
    at(id).replaceChildren(...rows);
  }
}

function tables(status) {
  const body = id => at(id).tBodies[0];
  fill(body('sites'), Object.entries(status.sites).map(([name, it]) => row(name, [
    [whole(it.requests)], [percent(it.requests ? it.http3 / it.requests : null)], [whole(it.server_errors)], [bytes(it.response_bytes)],
  ])), 5, 'no request yet');
  fill(body('upstreams'), status.upstreams.map(it => row(it.url, [
    node('span', it.health, it.health === 'well' ? 'good' : 'bad'), [whole(it.open)], [whole(it.connections)], [whole(it.failures)],
  ])), 5, 'none: files, redirects and fixed replies answer');
  fill(body('certificates'), status.certificates.map(it => {
    const days = Math.floor((it.ends - Date.now() / 1000) / 86400);
    const remark = node('span', it.warning || '', days < 0 ? 'bad' : 'warn');
    return row(it.names.join(', '), [new Date(it.ends * 1000).toISOString().slice(0, 10), [whole(days)], remark]);
  }), 4, 'none yet');
  const { offered, taken } = status.discovery;
  at('discovery').textContent = offered
    ? `${whole(offered)} clients were told of HTTP/3 over TCP; ${whole(taken)} of them have come over it.`
    : 'No client has been told of HTTP/3 over TCP yet.';
  const { loaded, refused, last, error } = status.reload;
  at('reloads').textContent = last === null ? 'Not reloaded since the start.'
    : `Reloaded ${whole(loaded)} times, refused ${whole(refused)} times, last at ${new Date(last * 1000).toLocaleString()}.` + (error ? ` The last one was refused: ${error}` : '');
  at('reloads').className = error ? 'fault' : '';
}

function show(status) {
  const before = samples.at(-1);
  if (before && before.began !== status.began) samples.length = 0;
  samples.push({ ...status, at: status.uptime });
  if (samples.length > KEPT) samples.shift();
  at('about').textContent = `version ${status.version}, profile ${status.profile}, up ${span(status.uptime)}, figures of ${new Date().toLocaleTimeString()}`;
  state(status.draining ? 'stopping' : 'running', status.draining ? '' : 'good');
  tiles();
  times(status);
  tables(status);
}

function state(text, kind) {
  if (at('state').textContent === text) return;
  at('state').textContent = text;
  at('state').className = 'state ' + kind;
}

async function poll() {
  try {
    const answer = await fetch('status', { cache: 'no-store' });
    if (!answer.ok) throw new Error(answer.status);
    show(await answer.json());
  } catch {
    state('no answer', 'bad');
  }
}

at('tiles').append(...TILES.map(tile));
poll();
setInterval(() => document.hidden || poll(), EVERY);
document.addEventListener('visibilitychange', () => document.hidden || poll());
