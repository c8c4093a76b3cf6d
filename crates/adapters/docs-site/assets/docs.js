// Copy buttons and colours on code, suggestions below the search, and `/` as its key. The pages are whole without it.
'use strict';

const said = document.getElementById('said');
const search = document.querySelector('input[type=search]');

const copy = async (button, text) => {
  let word = 'Copied';
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    word = 'Not allowed';
  }
  button.textContent = word;
  said.textContent = word;
  setTimeout(() => {
    button.textContent = 'Copy';
    said.textContent = '';
  }, 2000);
};

// Browsers let pages write to the clipboard over https, and on the machine itself.
if (navigator.clipboard) {
  for (const box of document.querySelectorAll('.code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copier';
    button.textContent = 'Copy';
    button.addEventListener('click', () => copy(button, box.querySelector('code').textContent));
    box.append(button);
  }
}

// The Content-Security-Policy allows this one way to make markup; highlight.js escapes what it is given.
const make = (html) => html;
const policy = window.trustedTypes?.createPolicy('highlight', { createHTML: make }) ?? { createHTML: make };

for (const code of document.querySelectorAll('.code code[class]')) {
  const language = code.className.replace('language-', '');
  if (window.hljs?.getLanguage(language)) {
    code.innerHTML = policy.createHTML(hljs.highlight(code.textContent, { language }).value);
  }
}

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  }
});

// Suggestions. All titles and headings are read once; the server does not search while somebody types.
const form = search.form;
const list = document.getElementById('suggestions');
const MOST = 8;
const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
let reading;

const read = async () => {
  const groups = await (await fetch(list.dataset.from)).json();
  const entry = ([name, below, address]) => ({ name, below, address, own: words(name), around: words(below) });
  return groups.map((group) => group.map(entry));
};

const has = (those, word) => those.some((one) => one.startsWith(word));

// Every word begins a word of the name or of what stands below it. Best is a name that has them all, then one that begins with the first,
// then a whole page.
const matches = (group, typed) => {
  const found = group.filter(({ own, around }) => typed.every((word) => has(own, word) || has(around, word)));
  const begins = ({ own }) => own[0]?.startsWith(typed[0]) ?? false;
  const rank = (one) => 4 * typed.filter((word) => has(one.own, word)).length + 2 * begins(one) + !one.below;
  return found.sort((one, other) => rank(other) - rank(one));
};

const item = ({ name, below, address }) => {
  const [row, link, second] = ['li', 'a', 'span'].map((element) => document.createElement(element));
  link.href = address;
  second.textContent = below;
  link.append(name, second);
  row.append(link);
  return row;
};

const close = () => { list.hidden = true; };

search.addEventListener('input', async () => {
  reading ??= read();
  const groups = await reading.catch(() => {
    reading = undefined;
    return [];
  });
  const typed = words(search.value);
  const found = typed.length ? groups.flatMap((group) => matches(group, typed)).slice(0, MOST) : [];
  list.replaceChildren(...found.map(item));
  list.hidden = !found.length;
  said.textContent = found.length ? `${found.length} suggestions` : '';
});
list.addEventListener('mousedown', (event) => event.preventDefault());
list.addEventListener('click', close);
form.addEventListener('focusout', (event) => form.contains(event.relatedTarget) || close());
form.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (list.hidden || !(step || event.key === 'Escape')) return;
  event.preventDefault();
  if (step) {
    const places = [search, ...list.querySelectorAll('a')];
    places.at((places.indexOf(document.activeElement) + step) % places.length).focus();
  } else {
    search.focus();
    close();
  }
});
