// The console's one script. Every page works without it; with it, a page that somebody looks at stays true, and keys work. All words come
// from the page.
const $ = (id) => document.getElementById(id);
const all = (what, where = document) => [...where.querySelectorAll(what)];
const main = $('main');
const lang = document.documentElement.lang;
const policy = globalThis.trustedTypes?.createPolicy('cutonce', { createHTML: (text) => text });
const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, 'text/html');
const note = (text, as) => Object.assign(document.createElement('p'), { textContent: text, className: as });

// Clocks go by the server's: what it said, and what has passed here since it was asked.
let clock = 0;
const setClock = (said, asked) => { if (said) clock = Date.parse(said) - asked; };
const now = () => clock + performance.now();
const ago = new Intl.RelativeTimeFormat(lang, { numeric: 'auto' });
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function tick() {
  if (!clock) return;
  for (const node of all('[data-until]')) {
    const s = Math.ceil((Date.parse(node.dataset.until) - now()) / 1000);
    if (s >= 3600) continue;
    write(node, s > 0 ? node.dataset.left.replace('{}', `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`) : node.dataset.over);
    if (s > 0 || node.dataset.was) continue;
    node.dataset.was = 1;
    const row = node.closest('li');
    if (row) row.classList.add('gone'); else { shut(document); soon(1500); }
  }
  for (const node of all('[data-since]')) {
    const s = Math.max(0, Math.floor((now() - Date.parse(node.dataset.since)) / 1000));
    const [n, unit] = s < 120 ? [s, 'second'] : s < 7200 ? [s / 60, 'minute'] : [s / 3600, 'hour'];
    write(node, ago.format(-Math.floor(n), unit));
  }
}

// Times are shown in the reader's own zone, with its name, unless they chose one.
const two = '2-digit';
const zone = new Intl.DateTimeFormat(lang, { year: 'numeric', month: two, day: two, hour: two, minute: two, second: two, hourCycle: 'h23', timeZoneName: 'short' });
function freshen() {
  for (const t of all('time[datetime]:not([data-zone], [title])')) {
    const p = Object.fromEntries(zone.formatToParts(new Date(t.dateTime)).map((x) => [x.type, x.value]));
    t.title = t.textContent;
    t.textContent = `${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}:${p.second} ${p.timeZoneName}`;
  }
  for (const a of all('[data-open]')) a.role = 'button';
  tick();
}

// Nothing can be decided here any more: what was typed stays, and can be copied.
function shut(where) {
  for (const b of all('[data-decides] button:not([type=button])', where)) b.disabled = true;
  for (const a of all('[data-open]', where)) { a.removeAttribute('href'); a.setAttribute('aria-disabled', 'true'); }
}

// Morph makes old as fresh is and keeps what is the reader's: the focus, what they typed or chose, and what they opened. Children go by
// their IDs, or by what labels them.
const keeps = { DETAILS: ['open'], DIALOG: ['open'], BUTTON: ['disabled', 'hidden'], INPUT: ['value', 'checked'] };
const keyOf = (n) => n.id || n.getAttribute?.('aria-labelledby');
const typed = (n) => n.nodeType === 1 && all('textarea, input:not([name=seen])', n).some((f) => f.value !== f.defaultValue || f.checked !== f.defaultChecked);

function morph(old, fresh) {
  if (old.nodeType !== 1) { if (old.data !== fresh.data) old.data = fresh.data; return; }
  const kept = keeps[old.nodeName] ?? [];
  for (const a of fresh.attributes) if (!kept.includes(a.name) && old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  for (const a of [...old.attributes]) if (!kept.includes(a.name) && !fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
  if (old.id === 'rows') rows(old, fresh);
  else if (old.id !== 'decide' && !old.matches('textarea, select, input')) children(old, fresh);
}

function children(old, fresh) {
  const known = new Map([...old.children].map((c) => [keyOf(c), c]));
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const key = keyOf(want);
    const have = key ? known.get(key) : at && !keyOf(at) && at.nodeName === want.nodeName && at;
    if (!have) { old.insertBefore(document.importNode(want, true), at); continue; }
    if (have === at) at = at.nextSibling; else old.insertBefore(have, at);
    morph(have, want);
  }
  while (at) {
    const next = at.nextSibling;
    if (at.id === 'decide' || typed(at)) shut(old); else at.remove();
    at = next;
  }
}

// A list's rows stay where they are: new ones are counted and shown when they are asked for, and those that are over are marked.
let news = null;
let hand = 0; // how far down the pointer is: what tells of news comes up on the other side
document.addEventListener('pointermove', (e) => { hand = e.clientY; }, { passive: true });
function rows(list, fresh) {
  const come = [...fresh.children].filter((r) => !$(r.id));
  const last = fresh.lastElementChild?.dataset.ends ?? '';
  for (const row of list.children) {
    const same = fresh.ownerDocument.getElementById(row.id);
    if (same) children(row, same);
    else if (!row.querySelector('.past') && ('whole' in fresh.dataset || 'first' in fresh.dataset && row.dataset.ends < last)) {
      row.classList.add('gone');
      row.firstElementChild.append(note(fresh.dataset.gone, 'notice past'));
    }
  }
  news = come.length ? [list, fresh, come[0].id] : null;
  if ($('news').hidden) $('news').parentElement.classList.toggle('aside', hand > innerHeight / 2);
  $('news').hidden = !news;
  $('news').textContent = $('news').dataset.text.replace('{}', come.length);
}

function showNews() {
  const [list, fresh, first] = news;
  news = null;
  $('news').hidden = true;
  children(list, fresh);
  freshen();
  $(first)?.querySelector('a')?.focus();
}

// The page reads itself anew. The row under the pointer, or with the focus, stays where it is on the screen.
let asking = false, again = false, due = 0, last = -1e6;
function soon(ms) { due ||= setTimeout(() => { due = 0; if (!document.hidden) refresh(); }, ms); }

async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  const asked = last = performance.now();
  try {
    const got = await fetch(location.href, { headers: { 'Cutonce-Live': '1' }, redirect: 'manual', cache: 'no-store' });
    if (got.type === 'opaqueredirect' || got.status === 401) return end();
    if (!got.ok) throw got.status;
    const page = parse(await got.text());
    const said = page.getElementById('main')?.dataset.now;
    if (!said) return;
    setClock(said, asked);
    const row = document.querySelector('main li:focus-within') ?? document.querySelector('main li:hover');
    const was = row?.getBoundingClientRect().top;
    for (const id of ['nav', 'frozen', 'main']) if ($(id) && page.getElementById(id)) morph($(id), page.getElementById(id));
    freshen();
    if (row?.isConnected) scrollBy({ top: row.getBoundingClientRect().top - was, behavior: 'instant' });
    if (dialog && !page.getElementById('decide')) decided(page);
    if (state === 'lost') tell(source?.readyState === 1 ? 'on' : 'poll');
  } catch { tell('lost'); } finally {
    asking = false;
    if (again) { again = false; soon(2000); }
  }
}

// Somebody else was faster, or time is up: the open form says so.
function decided(page) {
  if (dialog.querySelector('.decided')) return;
  shut(document);
  const said = note(page.querySelector('.standing, main .notice')?.textContent, 'notice bad decided');
  said.setAttribute('role', 'alert');
  $('decision').prepend(said);
}

// The stream says that there is news. Without it the page asks by itself.
let source, state = '', poller = 0;
function tell(next) {
  if (next === state) return;
  $('link').textContent = next === 'on' && !state ? '' : $('link').dataset[next === 'on' ? 'kept' : next];
  $('link').className = state = next;
}
function end() { source?.close(); clearInterval(poller); tell('ended'); }
function poll(every) { clearInterval(poller); poller = setInterval(soon, every, 0); }

function connect() {
  source?.close();
  if (!main.dataset.live) { tell('poll'); return poll(15000); }
  source = new EventSource(main.dataset.live);
  source.onopen = () => { tell('on'); poll(60000); };
  source.addEventListener('changed', () => soon(Math.max(100, last + 2000 - performance.now()))); // a busy tenant is read every two seconds
  source.addEventListener('ended', end);
  source.onerror = () => {
    const closed = source.readyState === 2;
    tell(closed ? 'poll' : 'lost');
    poll(15000);
    if (closed) setTimeout(connect, 60000);
  };
}

function look() {
  if (state === 'ended') return;
  if (document.hidden) source?.close(); else { soon(0); connect(); }
}

// The form of a decision is a part of the page; here it is a dialog. It is sent once, and only the server's answer says what was decided.
const dialog = $('decide');
function open(yes) {
  const button = dialog?.querySelector(yes ? 'button.yes' : 'button.no');
  if (!button || button.disabled || dialog.open) return;
  const unseen = yes && all('input[name=seen]').find((i) => !i.checked);
  if (unseen) return unseen.focus();
  $('decision').dataset.how = yes ? 'yes' : 'no';
  dialog.showModal();
  (yes ? $('typed') ?? button : $('reason')).focus();
}
if (dialog) {
  dialog.close();
  for (const b of all('[data-close]', dialog)) { b.hidden = false; b.onclick = () => dialog.close(); }
  if (dialog.dataset.refused) { open(dialog.dataset.refused !== 'reject'); dialog.querySelector('[role=alert]')?.focus(); }
}
document.addEventListener('click', (e) => {
  const opener = e.target.closest('[data-open]');
  if (!opener) return;
  e.preventDefault();
  if (opener.hasAttribute('href')) open(opener.dataset.open !== 'reject');
});
document.addEventListener('submit', (e) => {
  if (e.target.dataset.sent) e.preventDefault();
  else if (e.target.method === 'post') e.target.dataset.sent = 1;
});
addEventListener('pageshow', (e) => { if (e.persisted) { for (const f of all('form[data-sent]')) delete f.dataset.sent; look(); } });

// Risky rows are ticked once they have been on the screen.
const eyes = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    clearTimeout(target.timer);
    if (isIntersecting) target.timer = setTimeout(() => { for (const box of all('input[name=seen]', target)) box.checked = true; }, 500);
  }
}, { threshold: 0.9 });
for (const row of all('[data-risky]')) eyes.observe(row);

// Keys: none where somebody types or composes, and none for those who have switched them off.
const keys = (set) => { try { return set ? localStorage.setItem('cutonce-keys', set) : localStorage.getItem('cutonce-keys') !== 'off'; } catch { return true; } };
const help = $('keys');
function step(by) {
  const links = all('.cards h2 a, .rows > li > a');
  links[Math.min(Math.max(links.indexOf(document.activeElement) + by, 0), links.length - 1)]?.focus();
}
const act = { j: () => step(1), k: () => step(-1), a: () => open(true), r: () => open(false), '?': () => help.showModal() };
document.addEventListener('keydown', (e) => {
  if (e.key === ' ' && e.target.matches?.('[data-open]')) { e.preventDefault(); e.target.click(); }
  const typing = e.isComposing || e.keyCode === 229 || e.target.closest?.('input, textarea, select, [contenteditable]');
  if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]') || !help || !Object.hasOwn(act, e.key) || !keys()) return;
  e.preventDefault();
  act[e.key]();
});
if (help) {
  $('keys-open').hidden = false;
  $('keys-open').onclick = act['?'];
  $('keys-on').checked = keys();
  $('keys-on').onchange = (e) => keys(e.target.checked ? 'on' : 'off');
  $('news').onclick = showNews;
}

setClock(main.dataset.now, performance.getEntriesByType('navigation')[0]?.requestStart ?? 0);
freshen();
setInterval(tick, 1000);
if ('live' in main.dataset) {
  document.addEventListener('visibilitychange', look);
  if (!document.hidden) connect();
}
