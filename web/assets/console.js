// The console's one script. Every page works without it; with it, a page that somebody looks at stays true, and keys work. It writes no
// text of its own: all words come from the page.
const $ = (id) => document.getElementById(id);
const all = (what, where = document) => [...where.querySelectorAll(what)];
const main = $('main');
const lang = document.documentElement.lang;
const policy = globalThis.trustedTypes?.createPolicy('cutonce', { createHTML: (text) => text });
const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, 'text/html');

// Clocks go by the server's: what it said, and what has passed here since it was asked.
let clock = 0;
const setClock = (node, asked) => { if (node?.dataset.now) clock = Date.parse(node.dataset.now) - asked; };
const now = () => clock + performance.now();
const two = (n) => String(n).padStart(2, '0');
const say = (text, with_) => text.replace('{}', with_);

function left(node) {
  const s = Math.ceil((Date.parse(node.dataset.until) - now()) / 1000);
  if (s > 0 && s < 3600) node.textContent = say(node.dataset.left, `${Math.floor(s / 60)}:${two(s % 60)}`);
  if (s <= 0 && !node.dataset.isOver) {
    node.dataset.isOver = 1;
    node.textContent = node.dataset.over;
    const row = node.closest('li');
    if (row) row.classList.add('gone');
    else { shut(); soon(1500); }
  }
}

const ago = new Intl.RelativeTimeFormat(lang, { numeric: 'always' });
function since(node) {
  const s = Math.max(0, Math.floor((now() - Date.parse(node.dataset.since)) / 1000));
  const text = s < 120 ? ago.format(-s, 'second') : s < 7200 ? ago.format(-Math.floor(s / 60), 'minute') : ago.format(-Math.floor(s / 3600), 'hour');
  if (node.textContent !== text) node.textContent = text;
}

function tick() {
  if (!clock) return;
  all('[data-until]').forEach(left);
  all('[data-since]').forEach(since);
}

// Times are shown in the reader's own zone, with its name, unless they chose one.
const zone = new Intl.DateTimeFormat(lang, {
  year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false, timeZoneName: 'short',
});
function localTimes(where) {
  for (const t of all('time[datetime]:not([data-zone])', where)) {
    const part = {};
    for (const p of zone.formatToParts(new Date(t.dateTime))) part[p.type] = p.value;
    t.title = t.textContent;
    t.textContent = `${part.year}-${part.month}-${part.day} ${part.hour === '24' ? '00' : part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`;
  }
}

// Nothing can be decided any more: what was typed stays, and can be copied.
function shut() {
  all('[data-decides]').forEach((d) => {
    all('button[name=decision]', d).forEach((b) => { b.disabled = true; });
    all('[data-open]', d).forEach((a) => { a.setAttribute('aria-disabled', 'true'); a.removeAttribute('href'); });
  });
}

// Morph makes old as fresh is and keeps what is the reader's: focus, typed text, what they opened. Children go by their IDs.
const kept = { DETAILS: ['open'], DIALOG: ['open'], INPUT: ['checked', 'value', 'disabled'], BUTTON: ['disabled', 'hidden'] };

function morph(old, fresh) {
  if (old.nodeType !== 1) { if (old.data !== fresh.data) old.data = fresh.data; return; }
  const keeps = kept[old.nodeName] ?? [];
  for (const a of fresh.attributes) if (!keeps.includes(a.name) && old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  for (const a of [...old.attributes]) if (!keeps.includes(a.name) && !fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
  if (['TEXTAREA', 'SELECT', 'INPUT'].includes(old.nodeName)) return;
  if (old.id === 'rows') rows(old, fresh); else if (old.id !== 'decide') children(old, fresh);
}

function children(old, fresh) {
  const known = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const have = want.id ? known.get(want.id) : at && !at.id && at.nodeName === want.nodeName ? at : null;
    if (!have) { old.insertBefore(document.importNode(want, true), at); continue; }
    if (have === at) at = at.nextSibling; else old.insertBefore(have, at);
    morph(have, want);
  }
  while (at) { const next = at.nextSibling; if (at.id !== 'decide') at.remove(); at = next; }
}

// A list's rows stay where they are: new ones are counted and shown when they are asked for, and those that are over are marked.
let news = null;
function rows(list, fresh) {
  const come = [...fresh.children].filter((r) => !$(r.id));
  const last = fresh.lastElementChild?.dataset.ends ?? '';
  for (const row of list.children) {
    const same = fresh.ownerDocument.getElementById(row.id);
    const gone = !same && ('whole' in fresh.dataset || 'first' in fresh.dataset && row.dataset.ends < last);
    if (same) { row.classList.remove('gone'); children(row, same); }
    if (gone && !row.classList.contains('gone')) {
      row.classList.add('gone');
      const note = document.createElement('p');
      note.className = 'notice';
      note.textContent = fresh.dataset.gone;
      row.firstElementChild.append(note);
    }
  }
  news = come.length ? { list, fresh, count: come.length } : null;
  const button = $('news');
  button.hidden = !news;
  if (news) button.textContent = say(button.dataset.text, news.count);
}

function showNews() {
  if (!news) return location.reload();
  const { list, fresh, count } = news;
  const first = [...fresh.children].find((r) => !$(r.id))?.id;
  const count0 = count;
  news = null;
  $('news').hidden = true;
  all('.gone', list).forEach((r) => r.remove());
  children(list, fresh);
  freshen(main);
  if (count0 && first) $(first)?.querySelector('a')?.focus();
}

function freshen(where) { localTimes(where); tick(); }

// The row under the pointer, or with the focus, stays where it is on the screen.
function steady(change) {
  const row = document.querySelector('main li:focus-within') ?? document.querySelector('main li:hover');
  const was = row?.getBoundingClientRect().top;
  change();
  if (row?.isConnected) scrollBy(0, row.getBoundingClientRect().top - was);
}

let asking = false, again = false;
async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  const asked = performance.now();
  try {
    const response = await fetch(location.href, { headers: { 'Cutonce-Live': '1' }, redirect: 'manual', cache: 'no-store' });
    if (response.type === 'opaqueredirect' || response.status === 401) return end();
    if (!response.ok) throw new Error(String(response.status));
    take(parse(await response.text()), asked);
    if (state === 'lost') tell(source?.readyState === 1 ? 'on' : 'poll');
  } catch { tell('lost'); } finally {
    asking = false;
    if (again) { again = false; soon(2000); }
  }
}

function take(page, asked) {
  const fresh = page.getElementById('main');
  if (!fresh?.dataset.now) return;
  setClock(fresh, asked);
  steady(() => {
    for (const id of ['nav', 'frozen', 'main']) { const to = page.getElementById(id); if (to && $(id)) morph($(id), to); }
    if ($('decide') && !page.getElementById('decide')) decided(page);
  });
  freshen(document);
}

// Somebody else was faster, or time is up: the open form says so.
function decided(page) {
  shut();
  const form = $('decision');
  if (!form || form.querySelector('.decided')) return;
  const note = document.createElement('p');
  note.className = 'notice bad decided';
  note.setAttribute('role', 'alert');
  note.textContent = page.querySelector('.standing, .notice')?.textContent ?? '';
  form.prepend(note);
}

let due = 0;
function soon(ms) { if (!due) due = setTimeout(() => { due = 0; if (!document.hidden) refresh(); }, ms); }

// The stream says that there is news. Without it the page asks by itself.
let source = null, state = '', poller = 0;
function tell(next) {
  if (next === state) return;
  const line = $('link');
  const quiet = next === 'on' && !state;
  state = next;
  line.className = next;
  line.textContent = quiet ? '' : line.dataset[next];
}

function end() { source?.close(); source = null; clearInterval(poller); tell('ended'); }

function poll(every) { clearInterval(poller); poller = setInterval(() => { if (!document.hidden) soon(0); }, every); }

function connect() {
  source?.close();
  if (!main.dataset.live || !globalThis.EventSource) { tell('poll'); return poll(15000); }
  source = new EventSource(main.dataset.live);
  source.onopen = () => { tell('on'); poll(60000); };
  source.addEventListener('changed', () => soon(state === 'on' ? 150 : 0));
  source.addEventListener('ended', end);
  source.onerror = () => {
    if (state === 'ended') return;
    tell(source.readyState === 2 ? 'poll' : 'lost');
    poll(15000);
    if (source.readyState === 2) setTimeout(connect, 60000);
  };
}

function look() {
  if (state === 'ended' || !('live' in main.dataset)) return;
  if (document.hidden) { source?.close(); source = null; return; }
  soon(0);
  connect();
}

// Dialogs. The form of a decision is part of the page without this script.
const dialog = $('decide');
function open(how) {
  const form = $('decision');
  const button = form?.querySelector(`button[value=${how === 'yes' ? 'approve],button[value=confirm' : 'reject'}]`);
  if (!button || button.disabled || dialog.open) return;
  const unseen = how === 'yes' && all('input[name=seen]').find((i) => !i.checked);
  if (unseen) { unseen.scrollIntoView({ block: 'center' }); unseen.focus({ preventScroll: true }); return; }
  form.dataset.how = how;
  dialog.showModal();
  (how === 'yes' ? $('typed') ?? button : $('reason')).focus();
}

if (dialog) {
  dialog.close();
  all('[data-close]').forEach((b) => { b.hidden = false; b.onclick = () => dialog.close(); });
  if (dialog.dataset.refused) { open(dialog.dataset.refused === 'reject' ? 'no' : 'yes'); dialog.querySelector('[role=alert]')?.focus(); }
}

document.addEventListener('click', (e) => {
  const opener = e.target.closest('[data-open]');
  if (opener) { e.preventDefault(); if (opener.hasAttribute('href')) open(opener.dataset.open === 'reject' ? 'no' : 'yes'); }
});

// A form is sent once; the page shows only what the server has answered.
document.addEventListener('submit', (e) => {
  if (e.target.dataset.sent) return e.preventDefault();
  if (e.target.method !== 'post') return;
  e.target.dataset.sent = 1;
});
addEventListener('pageshow', (e) => { if (e.persisted) { all('form[data-sent]').forEach((f) => delete f.dataset.sent); look(); } });

// Risky rows are ticked when they have been on the screen.
if (globalThis.IntersectionObserver) {
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const tick = e.target.querySelector('input[name=seen]');
      if (!e.isIntersecting) { clearTimeout(e.target.timer); continue; }
      e.target.timer = setTimeout(() => { if (tick) tick.checked = true; seen.unobserve(e.target); }, 500);
    }
  }, { threshold: 0.9 });
  all('[data-risky]').forEach((r) => seen.observe(r));
}

// Keys: off where somebody types, composes or has switched them off.
const switched = 'cutonce-keys';
const keysOn = () => { try { return localStorage.getItem(switched) !== 'off'; } catch { return true; } };
const help = $('keys');
if (help) {
  $('keys-open').hidden = false;
  $('keys-open').onclick = () => help.showModal();
  $('keys-on').checked = keysOn();
  $('keys-on').onchange = (e) => { try { localStorage.setItem(switched, e.target.checked ? 'on' : 'off'); } catch { /* not kept */ } };
  $('news').onclick = showNews;
}

const act = {
  j: () => step(1), k: () => step(-1), a: () => open('yes'), r: () => open('no'), '?': () => help?.showModal(),
};
function step(by) {
  const links = all('.cards h2 a, .rows > li > a');
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}
document.addEventListener('keydown', (e) => {
  if (e.isComposing || e.keyCode === 229 || e.ctrlKey || e.metaKey || e.altKey || e.repeat && !'jk'.includes(e.key)) return;
  if (e.target.closest?.('input, textarea, select, [contenteditable]') || document.querySelector('dialog[open]') || !keysOn()) return;
  if (!Object.hasOwn(act, e.key)) return;
  e.preventDefault();
  act[e.key]();
});

setClock(main, performance.getEntriesByType('navigation')[0]?.requestStart ?? 0);
freshen(document);
setInterval(tick, 1000);
if ('live' in main.dataset) {
  document.addEventListener('visibilitychange', look);
  if (!document.hidden) connect();
}
