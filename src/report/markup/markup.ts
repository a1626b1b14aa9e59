import { createHash } from 'node:crypto';

/** Text that is already HTML or SVG. Only this file makes one, so that nothing reaches a page unescaped. */
export class Markup {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  toString(): string {
    return this.#source;
  }
}

/** The content that a template takes: markup goes in as it is, everything else is escaped; null, undefined and false are nothing. */
export type Content = Markup | string | number | null | undefined | false | readonly Content[];

/**
 * HTML (or SVG) with every interpolated value escaped for element content and for quoted attribute values alike:
 * node names, file names and log lines come from outside.
 */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  let source = parts[0] ?? '';
  values.forEach((value, index) => {
    source += contentSource(value) + (parts[index + 1] ?? '');
  });
  return new Markup(source);
}

export const join = (items: readonly Content[]): Markup => new Markup(contentSource(items));

/**
 * JSON that is inert inside a `<script type="application/json">`: no `<`, so neither `</script>` nor `<!--` can appear, and ASCII alone: nothing hides or reorders what a
 * reader of the source sees.
 */
export const jsonIsland = (value: unknown, replacer?: (key: string, value: unknown) => unknown): Markup =>
  new Markup(ascii(JSON.stringify(value, replacer) ?? 'null').replaceAll('<', '\\u003c'));

/** A script or JSON with everything else as `\uXXXX` in its texts; browsers also read such a page in less time. */
export const ascii = (source: string): string =>
  source.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A stylesheet or script of our own, which escaping would break. */
export const ownSource = (source: string): Markup => new Markup(source);

const sha256 = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** One HTML file that opens offline and is safe to pass on: nothing is loaded, and no script or style runs but these two, by their digests. The script stands in the body, where the caller puts it. */
export const htmlFile = (
  { title, body }: Readonly<Record<'title' | 'body', Content>>,
  { version, style, script }: Readonly<Record<'version' | 'style' | 'script', string>>,
): string =>
  markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="trtforge ${version}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${ownSource(sha256(script))}; style-src ${ownSource(sha256(style))}; img-src data:; base-uri 'none'; form-action 'none'">
<link rel="icon" href="data:,">
<title>${title} &middot; trtforge</title>
<style>${ownSource(style)}</style>
</head>
<body>
${body}
</body>
</html>
`.toString();

function contentSource(content: Content): string {
  if (content instanceof Markup) return content.toString();
  if (content === null || content === undefined || content === false) return '';
  if (typeof content === 'object') return content.map(contentSource).join('');
  return escapeText(String(content));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Escapes for element content and quoted attributes. Characters that HTML forbids (controls) and those that reorder or hide text
 * (bidirectional overrides, zero-width) become visible code points.
 */
const escapeText = (text: string): string =>
  visibleText(text.replace(/[&<>"']/g, (character) => entities[character] ?? character));

/** Characters that a reader would not see as visible code points. */
export const visibleText = (text: string): string =>
  text.replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);

/** Controls, format characters and lone surrogates; tab and line ends are text. */
const HIDDEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}]/gu;
