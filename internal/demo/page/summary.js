// Tells those who hear the page what happens, at most every few seconds.

const atMost = 4000;

// summaryIn returns a function tell(text). It writes text() into the element when it is time again,
// as it is then, and only the last of what it was told until then.
export function summaryIn(element) {
  let timer, text;
  let last = -atMost;
  return (newest) => {
    text = newest;
    timer ??= setTimeout(() => {
      timer = undefined;
      last = performance.now();
      element.textContent = text();
    }, Math.max(300, last + atMost - performance.now()));
  };
}
