// A button that copies a text.
import { el } from './dom.js';
import { tell } from './ask.js';

// write writes to the clipboard, in the old way: a page that came over plain http from another machine has no other. A dialog that is open
// lets nothing outside of it be selected.
function write(text, near) {
  const box = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  box.value = text;
  near.after(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  near.focus();
  return done;
}

export const copier = (text, what = 'the ID') => el('button', {
  type: 'button', class: 'copy', title: text, 'aria-label': `Copy ${what} ${text}`,
  onclick: (e) => {
    e.preventDefault();
    if (write(text, e.currentTarget)) tell(`Copied ${what}.`);
    else tell('This browser does not let the page copy.', 'bad');
  },
}, '⧉');
