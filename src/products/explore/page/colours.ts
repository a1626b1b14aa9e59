/** The colours of the page's style as they are now, each looked up once. */
export function palette(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (name) => {
    const colour = known.get(name) ?? style.getPropertyValue(`--${name}`).trim();
    known.set(name, colour);
    return colour;
  };
}

const TONES: Readonly<Record<string, string>> = {
  float32: 'warn',
  float16: 'accent',
  bfloat16: 'accent',
  copy: 'bad',
  mixed: 'ink',
};

/** The colour of a precision; integers and 8-bit floats are the low ones. */
export const toneOf = (precision: string): string =>
  TONES[precision] ?? (/^(?:u?int[48]|float[48])/.test(precision) ? 'good' : 'quiet');
