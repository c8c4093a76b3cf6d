// Copy buttons and colours on code, and `/` as a key for the search. The pages are whole without it.
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
