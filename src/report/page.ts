import { jsonIsland, type Markup, markup, styleSheet } from './markup.js';
import { type SectionFacts, section } from './parts.js';
import { pageStyle } from './style.js';

/** Nothing may be loaded or run: the page is style, text and inline SVG, so it opens offline and is safe to pass on. */
const CONTENT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

export interface PageFacts {
  readonly title: string;
  /** Of trtforge. */
  readonly version: string;
  readonly header: Markup;
  readonly sections: readonly SectionFacts[];
  /** Where the data is besides the page. */
  readonly dataBeside: string;
  /** Goes into the page as JSON, under the id `result`. */
  readonly result: unknown;
}

/** One HTML file that needs no network and no script. */
export function page({ title, version, header, sections, dataBeside, result }: PageFacts): string {
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="trtforge ${version}">
<meta http-equiv="Content-Security-Policy" content="${CONTENT_POLICY}">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${styleSheet(pageStyle)}</style>
</head>
<body>
<a class="skip" href="#${sections[0]?.id ?? 'repeat'}">Skip to the results</a>
<div class="page">
${header}
<nav aria-label="Contents"><ol>${sections.map(({ id, title: name }) => markup`<li><a href="#${id}">${name}</a></li>`)}</ol></nav>
<main>
${sections.map(section)}
</main>
<footer><p>Written by trtforge ${version}. This page needs no network; its data is inside it as JSON${dataBeside}.</p></footer>
</div>
<script type="application/json" id="result">${jsonIsland(result)}</script>
</body>
</html>
`.toString();
}
