/** Whether a text fits a pattern in which a star stands for any run of characters; time grows with the product of their lengths at most. */
export function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let star = -1;
  let retry = 0;
  let next = 0;
  while (at < text.length) {
    if (pattern[next] === '*') {
      star = next++;
      retry = at;
    } else if (next < pattern.length && pattern[next] === text[at]) {
      next++;
      at++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++retry;
    } else return false;
  }
  while (pattern[next] === '*') next++;
  return next === pattern.length;
}
