import { jsonIsland, markup, styleSheet } from './markup.js';
import { type SectionFacts, section } from './parts.js';
import type { ForgeResult } from './result.js';
import { accuracySection, engineAccuracySection } from './section/accuracy.js';
import { engineSection } from './section/engine.js';
import { modelSection } from './section/model.js';
import { phasesSection } from './section/phases.js';
import { precisionSection } from './section/precision.js';
import { sizesSection } from './section/sizes.js';
import { speedSection } from './section/speed.js';
import { environmentSection, repeatSection } from './section/surroundings.js';
import { verdictHeader } from './section/verdict.js';
import { modelName, outcomeWord } from './sentences.js';
import { pageStyle } from './style.js';

const sections: readonly ((result: ForgeResult) => SectionFacts | null)[] = [
  accuracySection,
  engineAccuracySection,
  speedSection,
  precisionSection,
  sizesSection,
  phasesSection,
  modelSection,
  engineSection,
  environmentSection,
  repeatSection,
];

/** Nothing may be loaded or run: the page is style, text and inline SVG, so it opens offline and is safe to pass on. */
const CONTENT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/** The report as one HTML file that needs no network and no script. The result itself is inside as JSON, under the id `result`. */
export function renderHtml(result: ForgeResult): string {
  const shown = sections.map((describe) => describe(result)).filter((facts) => facts !== null);
  const title = `${modelName(result)}: ${outcomeWord[result.verdict.outcome].toLowerCase()} · trtforge`;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="trtforge ${result.version}">
<meta http-equiv="Content-Security-Policy" content="${CONTENT_POLICY}">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${styleSheet(pageStyle)}</style>
</head>
<body>
<a class="skip" href="#${shown[0]?.id ?? 'repeat'}">Skip to the results</a>
<div class="page">
${verdictHeader(result)}
<nav aria-label="Contents"><ol>${shown.map(({ id, title }) => markup`<li><a href="#${id}">${title}</a></li>`)}</ol></nav>
<main>
${shown.map(section)}
</main>
<footer><p>Written by trtforge ${result.version}. This page needs no network; its data is inside it as JSON and beside it as report.json.</p></footer>
</div>
<script type="application/json" id="result">${jsonIsland(result)}</script>
</body>
</html>
`.toString();
}
