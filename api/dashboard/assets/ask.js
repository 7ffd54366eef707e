// Questions and messages to the one who looks.
import { $, clone, el, fill } from './dom.js';

// ask shows a dialog. act(data) is called when it is confirmed: while act works the dialog waits, and if act throws, the dialog says so.
// It resolves to what act returned, or to undefined if the dialog was left. Body is text, a node, or a list of them; fields with a
// name are in data (a FormData). ready(dialog, signal) is called when the dialog opens, to find out all that is needed to confirm. It
// returns false if there is nothing to confirm. The signal, which act gets too, aborts when the dialog is left.
export function ask({ title, body = [], action, danger = false, act, ready }) {
  const dialog = clone('ask', { title });
  const form = $('form', dialog);
  const ok = $('[data-act=ok]', dialog);
  ok.textContent = action;
  ok.classList.toggle('danger', danger);
  $('[data-slot=body]', dialog).append(...[body].flat().map((b) => (typeof b === 'string' ? el('p', {}, b) : b)));
  document.body.append(dialog);
  dialog.showModal();
  const left = new AbortController();
  return new Promise((resolve) => {
    let result;
    const failed = (err) => {
      fill(dialog, { error: err.message });
      $('[data-field=error]', dialog).hidden = false;
    };
    if (ready) {
      ok.disabled = true;
      ready(dialog, left.signal).then((some) => (ok.disabled = some === false), failed);
    }
    $('[data-act=cancel]', dialog).addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      left.abort();
      dialog.remove();
      resolve(result);
    });
    form.addEventListener('submit', async (e) => {
      e.preventDefault();
      ok.disabled = true;
      const error = $('[data-field=error]', dialog);
      error.hidden = true;
      try {
        result = await act(new FormData(form), dialog, left.signal);
        dialog.close();
      } catch (err) {
        failed(err);
        ok.disabled = false;
      }
    });
  });
}

// tell shows a short message: text, or a list of texts and nodes.
export function tell(text, kind = 'done') {
  const toast = clone('toast');
  toast.dataset.kind = kind;
  toast.append(...[text].flat());
  $('#toasts').append(toast);
  setTimeout(() => toast.remove(), 6000);
}
