// A view is a part of a page that shows what a call returned. It is loading, ready, empty, failed or stale: the old content stays there
// while a new call fails, and the view says since when.
import { clone, fill, $ } from './dom.js';
import { isCut } from './live.js';
import { ago, stamp } from './time.js';

const patience = 5000; // ms until a call that has no answer is said to be slow

export class View {
  // root is the element; load(signal) makes the call; show(data, root) shows it and returns false if there is nothing; empty says so.
  constructor(root, { load, show, empty = 'Nothing here yet.', every = 0 }) {
    Object.assign(this, { root, load, show, empty, every, at: 0, failures: 0 });
    root.dataset.state = 'loading';
    root.setAttribute('aria-busy', 'true');
    document.addEventListener('zone', () => this.data !== undefined && this.render());
    document.addEventListener('visibilitychange', () => !document.hidden && (this.every || this.failing() || this.lacks()) && this.refresh());
    document.addEventListener('live', (e) => (e.detail.now === 'live' ? ['lost', 'away'].includes(e.detail.was) && this.refresh() : this.error && this.fail(this.error)));
  }

  // refresh makes the call. One that is on its way is given up for it.
  async refresh() {
    clearTimeout(this.timer);
    this.call?.abort();
    const call = (this.call = new AbortController());
    const slow = setTimeout(() => call.signal.aborted || this.wait(), patience);
    call.signal.addEventListener('abort', () => clearTimeout(slow));
    try {
      this.data = await this.load(call.signal);
      if (call.signal.aborted) return;
      this.at = Date.now();
      this.failures = 0;
      this.error = undefined;
      this.render();
    } catch (err) {
      if (call.signal.aborted) return;
      this.failures++;
      this.fail(err);
    } finally {
      clearTimeout(slow);
    }
    this.root.removeAttribute('aria-busy');
    const wait = this.failing() ? Math.min(30_000, 1000 * 2 ** this.failures) : this.every || (this.lacks() && 10_000);
    if (wait) this.timer = setTimeout(() => (document.hidden ? (this.timer = 0) : this.refresh()), wait);
  }

  // lacks reports whether a part of the answer is missing. Nothing tells when that part answers again.
  lacks() {
    return Boolean(this.data?.could_not_ask?.length);
  }

  // failing reports whether the last call failed, and the next may not.
  failing() {
    return this.failures > 0 && !this.refused;
  }

  render() {
    const some = this.show(this.data, this.root) !== false;
    const lacks = this.data?.could_not_ask ?? [];
    this.root.dataset.state = lacks.length ? 'stale' : some ? 'ready' : 'empty';
    if (!lacks.length) return this.say(some ? '' : this.empty);
    this.say(`Could not ask ${lacks.map((u) => u.source).join(', ')}: what lies there is not shown. ${lacks[0].error}`, true);
  }

  // fail greys what is there and says of when it is, and why nothing newer came if the banner does not say that.
  fail(err) {
    this.error = err;
    this.refused = err.status >= 400 && err.status < 408; // the same call gets the same answer
    if (!(err instanceof Error && 'status' in err)) console.error(err);
    const old = this.at > 0;
    this.root.dataset.state = old ? 'stale' : 'failed';
    const why = isCut() ? '' : err.message;
    this.say((old ? `As of ${stamp(this.at)}, ${ago(this.at)}${why ? ': ' : '.'}` : '') + (why || (old ? '' : 'Nothing is known yet.')), true);
  }

  // wait says that the content may be old, or why there is none yet, because a call takes long.
  wait() {
    if (!this.at) return this.say('The server has not answered yet. Is its Redis there?');
    this.root.dataset.state = 'stale';
    this.say(`As of ${stamp(this.at)}, ${ago(this.at)}${isCut() ? '.' : ': the server has not answered since.'}`);
  }

  // say shows a sentence below the heading, in place of the content or above what is stale.
  say(text, again = false) {
    let box = $(':scope > .state', this.root);
    if (!text) return box?.remove();
    if (!box) {
      box = clone('state');
      $('[data-act=again]', box).addEventListener('click', () => this.refresh());
      const head = $(':scope > :is(h2, .head):first-child', this.root);
      if (head) head.after(box);
      else this.root.prepend(box);
    }
    fill(box, { text });
    $('[data-act=again]', box).hidden = !again;
  }
}
