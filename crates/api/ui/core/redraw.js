// Schedules drawing the page: at the next frame after an answer or an action, and at most once a second for events.

const EVENTS_MS = 1000;

/** @type {() => void} */
let draw = () => {};
let isRequested = false;
let drawnAt = 0;
let later = 0;

/** Sets the function that draws the page, and draws it at the next frame. @param {() => void} drawing */
export function drawBy(drawing) {
  draw = drawing;
  redraw();
}

/** Draws the page at the next frame, once for all calls before it. */
export function redraw() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(() => {
    isRequested = false;
    drawnAt = performance.now();
    draw();
  });
}

/** Draws the page soon, but at most once a second. */
export function redrawSoon() {
  if (later !== 0) return;
  const wait = Math.max(0, drawnAt + EVENTS_MS - performance.now());
  later = setTimeout(() => {
    later = 0;
    redraw();
  }, wait);
}
