// Hands on the picture: drag, wheel, pinch and keys.
import { $ } from '../dom.js';

// mouse has the pointer move and zoom the picture, and choose slots. Two fingers pinch. does: { moved, choose(hit), hover(hit, event) }.
export function mouse(picture, does) {
  const { scale } = picture.state;
  const canvas = picture.slots;
  for (const c of [canvas, picture.lanes]) {
    const down = new Map();
    let far = 0; // since the first finger came; after a pinch, as far as it takes to choose nothing
    c.addEventListener('pointerdown', (e) => {
      if (e.button) return;
      if (!down.size) far = 0;
      down.set(e.pointerId, e);
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener('pointermove', (e) => {
      const was = down.get(e.pointerId);
      if (!was) return c === canvas && does.hover(picture.hit(e.offsetX, e.offsetY), e);
      const before = spread(down);
      down.set(e.pointerId, e);
      if (down.size > 1) {
        far = Infinity;
        does.hover();
        pinch(scale, before, spread(down), c.getBoundingClientRect().left);
        return does.moved();
      }
      far += Math.abs(e.clientX - was.clientX);
      if (far < 4) return;
      c.classList.add('dragging');
      does.hover();
      scale.pan((was.clientX - e.clientX) * scale.perPixel);
      does.moved();
    });
    const up = (e) => {
      if (!down.delete(e.pointerId)) return;
      c.classList.remove('dragging');
      if (far < 4 && e.type === 'pointerup' && c === canvas) does.choose(picture.hit(e.offsetX, e.offsetY));
    };
    c.addEventListener('pointerup', up);
    c.addEventListener('pointercancel', up);
    c.addEventListener('pointerleave', () => does.hover());
    c.addEventListener('wheel', (e) => wheel(e, scale, does), { passive: false });
    // The browser may scroll the rows with one finger, but not with two: then the second finger would be taken away.
    c.addEventListener('touchmove', (e) => e.touches.length > 1 && e.cancelable && e.preventDefault(), { passive: false });
  }
}

// spread is where the middle of two fingers is, and how far they are apart from side to side and up and down.
function spread(down) {
  const [a, b = a] = [...down.values()];
  return { x: (a.clientX + b.clientX) / 2, apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) };
}

// pinch keeps the moments under the fingers there: it zooms around their middle, and moves with it. While the picture follows the
// present, that stays where it is.
function pinch(scale, before, now, left) {
  if (before.apart > 10 && now.apart > 10) scale.zoom(scale.span * (before.apart / now.apart), before.x - left);
  if (!scale.follow) scale.pan((before.x - now.x) * scale.perPixel);
}

// wheel zooms with ctrl (or a pinch of a touchpad), and moves the time to the side; else the rows scroll.
function wheel(e, scale, does) {
  const unit = e.deltaMode === 1 ? 16 : 1;
  const across = e.shiftKey ? e.deltaY || e.deltaX : Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : 0;
  if (e.ctrlKey || e.metaKey) scale.zoom(scale.span * Math.exp(Math.max(-60, Math.min(60, e.deltaY * unit)) / 100), e.offsetX);
  else if (across) scale.pan(across * unit * scale.perPixel);
  else return;
  e.preventDefault();
  does.moved();
}

// keys has the keyboard do the same. does: { moved, step(by), row(by), page(by), enter, leave, follow }.
export function keys(picture, does) {
  const { scale } = picture.state;
  $('#rows').addEventListener('keydown', (e) => {
    if (e.target !== e.currentTarget || e.altKey || e.ctrlKey || e.metaKey) return;
    const move = (part) => {
      scale.pan(scale.span * part);
      does.moved();
    };
    const zoom = (by) => {
      scale.zoom(scale.span * by);
      does.moved();
    };
    const act = {
      ArrowLeft: () => (e.shiftKey ? move(-0.2) : does.step(-1)),
      ArrowRight: () => (e.shiftKey ? move(0.2) : does.step(1)),
      ArrowUp: () => does.row(-1),
      ArrowDown: () => does.row(1),
      PageUp: () => does.page(-1),
      PageDown: () => does.page(1),
      '+': () => zoom(0.5),
      '=': () => zoom(0.5),
      '-': () => zoom(2),
      '−': () => zoom(2),
      End: () => does.follow(),
      Enter: () => does.enter(),
      Escape: () => does.leave(),
    }[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
}
