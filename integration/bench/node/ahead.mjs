// Sets the wall clock of a process ahead, by ONBEAT_BEAT_AHEAD milliseconds: node --import ./ahead.mjs. Timers go by another clock.
const ahead = Number(process.env.ONBEAT_BEAT_AHEAD);
const real = Date.now;
const now = () => real() + ahead;
globalThis.Date = class extends Date {
  constructor(...args) { super(...(args.length ? args : [now()])); }
  static now() { return now(); }
};
