const LIGHT = `
  --paper: #fbfaf6; --card: #ffffff; --ink: #1f1d1a; --muted: #625d54; --rule: #e4dfd4; --track: #efebe2;
  --accent: #2b5f9e; --quiet: #a39b8b; --good: #1c7a4a; --bad: #b3261e; --warn: #8a5a00;
  --good-wash: #e9f5ee; --bad-wash: #fcecea; --warn-wash: #fbf2dd; --accent-wash: #e9f0f8;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif;
  --book: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Palatino, Cambria, "Noto Serif", "Liberation Serif", Georgia, serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "JetBrains Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace;`.trim();

const CHART = `
.chart { display: block; overflow: visible; font-family: var(--sans); }
.chart text { fill: var(--ink); font-size: 13.5px; }
.chart .figure, .chart .tick { fill: var(--muted); font-variant-numeric: tabular-nums; }
.chart .tick { font-size: 12px; }
.chart .mark-label { font-size: 12.5px; font-weight: 600; }
.chart text { paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
.mark.accent { fill: var(--accent); } .mark.quiet { fill: var(--quiet); } .mark.good { fill: var(--good); } .mark.bad { fill: var(--bad); } .mark.warn { fill: var(--warn); }
.chart .track { fill: var(--track); }
.chart .grid { stroke: var(--rule); stroke-width: 1; }
.chart .axis { stroke: var(--muted); stroke-width: 1; }
.joined.accent, .other.accent { stroke: var(--accent); } .joined.quiet, .other.quiet { stroke: var(--quiet); } .joined.good, .other.good { stroke: var(--good); } .joined.bad, .other.bad { stroke: var(--bad); } .joined.warn, .other.warn { stroke: var(--warn); }
.joined { stroke-width: 2; stroke-linecap: round; }
.joined.other { stroke-dasharray: 5 4; }
.mark.other { fill: var(--card); stroke-width: 2.5; }
.chart line.limit { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.chart line.note { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 1 3; }
.chart text.limit { fill: var(--bad); }`.trim();

/**
 * The look of the page. Colours are variables with a light and a dark value; text on paper has a contrast of at least 4.5 in both
 * (a test measures it). Type is the reader's own system face, with a book face for headings, because a page that opens offline brings none.
 */
export const pageStyle = `
:root {
  color-scheme: light dark;
${LIGHT}
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15171b; --card: #1c1f25; --ink: #e9e6e0; --muted: #a8a49b; --rule: #30343c; --track: #292d34;
    --accent: #82b4ea; --quiet: #7d7a74; --good: #62c992; --bad: #ff8f85; --warn: #e5b64b;
    --good-wash: #172a20; --bad-wash: #341c1a; --warn-wash: #30280f; --accent-wash: #1a2736;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 var(--sans); counter-reset: section figure table; }
.page { max-width: 60rem; margin: 0 auto; padding: 3rem 1.5rem 4rem; }
h1, h2, h3 { font-family: var(--book); font-weight: 600; line-height: 1.2; text-wrap: balance; overflow-wrap: anywhere; }
h1 { font-size: clamp(2rem, 6vw, 3.1rem); margin: 0.1em 0 0.15em; letter-spacing: -0.015em; }
h2 { font-size: 1.65rem; margin: 0 0 0.4rem; }
h3 { font-size: 1.2rem; margin: 1.6rem 0 0.5rem; }
h2::before { counter-increment: section; content: counter(section); color: var(--muted); font-weight: 400; margin-right: 0.7em; }
p { margin: 0 0 0.8em; }
a { color: var(--accent); text-underline-offset: 0.2em; }
a:focus-visible, summary:focus-visible, pre:focus-visible, .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: 0.875em; }
code { overflow-wrap: anywhere; }
.muted { color: var(--muted); }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: 0.5rem 1rem; z-index: 1; }

.kicker { color: var(--muted); font-size: 0.875rem; letter-spacing: 0.02em; margin: 0; }
.subtitle { font-family: var(--book); font-size: 1.25rem; color: var(--muted); margin: 0 0 1.6rem; overflow-wrap: anywhere; }

.verdict { display: flex; gap: 1.1rem; align-items: flex-start; padding: 1.3rem 1.5rem; border-radius: 14px; border: 1px solid; }
.verdict.pass { background: var(--good-wash); border-color: var(--good); --tone: var(--good); }
.verdict.fail, .verdict.error { background: var(--bad-wash); border-color: var(--bad); --tone: var(--bad); }
.verdict.built { background: var(--accent-wash); border-color: var(--accent); --tone: var(--accent); }
.verdict.inconclusive { background: var(--warn-wash); border-color: var(--warn); --tone: var(--warn); }
.verdict > div { min-width: 0; flex: 1; overflow-wrap: anywhere; }
.verdict-icon { flex: none; }
.verdict-icon circle { fill: var(--tone); }
.verdict-icon path { fill: none; stroke: var(--paper); stroke-width: 4.5; stroke-linecap: round; stroke-linejoin: round; }
.verdict-word { font-family: var(--book); font-size: 1.7rem; font-weight: 600; line-height: 1.1; color: var(--tone); margin: 0.1rem 0 0.3rem; }
.verdict-headline { margin: 0; }
.verdict ul { margin: 0.6rem 0 0; padding-left: 1.15rem; }
.verdict li { margin: 0.15rem 0; white-space: pre-line; }
.remedy { margin: 0.8rem 0 0; white-space: pre-line; }

.dials { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1.2rem 0.8rem; margin: 1.9rem 0 0; padding: 0; text-align: center; }
.dials li { display: flex; flex-direction: column; align-items: center; justify-content: flex-end; gap: 0.4rem; }
.dials p { margin: 0; font-size: 0.875rem; color: var(--muted); line-height: 1.35; }
.dials .tile-figure { font-family: var(--book); font-size: 1.75rem; color: var(--ink); height: 104px; display: flex; align-items: center; white-space: nowrap; }
.dial-fill.accent { color: var(--accent); } .dial-fill.good { color: var(--good); } .dial-fill.bad { color: var(--bad); } .dial-fill.warn { color: var(--warn); }
.dial-track { fill: none; stroke: var(--track); stroke-width: 9; }
.dial-fill { fill: none; stroke: currentColor; stroke-width: 9; stroke-linecap: round; }
.dial-figure { font: 600 21px var(--book); fill: var(--ink); }

nav { margin: 2.2rem 0 0; border-block: 1px solid var(--rule); }
nav ol { list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; margin: 0; padding: 0.7rem 0; font-size: 0.9rem; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }

section { margin-top: 3.4rem; scroll-margin-top: 1.5rem; }
.lead { font-size: 1.06rem; max-width: 46rem; overflow-wrap: anywhere; }
figure { margin: 1.4rem 0; padding: 1.2rem 1.3rem 0.9rem; background: var(--card); border: 1px solid var(--rule); border-radius: 12px; min-width: 0; }
figcaption { margin-top: 0.7rem; font-size: 0.875rem; color: var(--muted); overflow-wrap: anywhere; }
figcaption::before { counter-increment: figure; content: "Figure " counter(figure) ". "; font-weight: 600; color: var(--ink); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.2rem; margin: 1.4rem 0; }
.figures figure { margin: 0; }

.definitions { position: absolute; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.9rem; overflow-wrap: anywhere; }
.pair p { margin: 0.5rem 0 0; font-size: 0.875rem; }
.pair svg { display: block; width: 100%; height: auto; max-height: 21rem; background: #16181c; }
.sound { display: block; } .sound path { stroke: var(--accent); }

.scroll { overflow-x: auto; margin: 1.2rem 0; --shade: color-mix(in srgb, var(--ink) 35%, transparent); background: linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 3rem 100% no-repeat local, linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 3rem 100% no-repeat local, linear-gradient(to right, var(--shade), transparent) 0 0 / 0.8rem 100% no-repeat, linear-gradient(to left, var(--shade), transparent) 100% 0 / 0.8rem 100% no-repeat; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; border-top: 2px solid var(--ink); border-bottom: 1px solid var(--ink); }
caption { text-align: left; font-size: 0.875rem; color: var(--muted); padding-bottom: 0.5rem; }
caption span { display: block; max-width: calc(100vw - 2.5rem); }
caption span::before { counter-increment: table; content: "Table " counter(table) ". "; font-weight: 600; color: var(--ink); }
th, td { padding: 0.45rem 0.9rem 0.45rem 0; vertical-align: top; text-align: left; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-weight: 600; border-bottom: 1px solid var(--ink); white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 400; min-width: 7rem; }
tbody th > code { display: inline-block; width: max-content; max-width: min(26rem, 78vw); }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.words { min-width: 5rem; }
.line { display: block; font-variant-numeric: tabular-nums; }
.short { white-space: nowrap; }
.long { min-width: 15rem; }

.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: 0 2rem; margin: 1.2rem 0; font-size: 0.93rem; }
.facts > div { display: grid; grid-template-columns: 7.5rem 1fr; gap: 0.8rem; padding: 0.4rem 0; border-bottom: 1px solid var(--rule); }
.facts .wide { grid-column: 1 / -1; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }

details { border-bottom: 1px solid var(--rule); padding: 0.65rem 0; }
summary { cursor: pointer; }
details > :not(summary) { margin: 0.8rem 0 0.4rem 1.05rem; }
.findings { list-style: none; padding: 0; }
.findings > li { padding: 0.45rem 0; border-bottom: 1px solid var(--rule); overflow-wrap: anywhere; }
.findings details { border: 0; padding: 0; }
.nodes { list-style: none; padding: 0; font-size: 0.875rem; columns: 22rem 2; column-gap: 2rem; }
.nodes li { break-inside: avoid; padding: 0.12rem 0; overflow-wrap: anywhere; }
.why { display: block; color: var(--muted); padding-left: 1rem; font-size: 0.93em; }
.badge { display: inline-block; font-size: 0.78rem; font-weight: 600; line-height: 1.5; padding: 0 0.55em; border-radius: 999px; border: 1px solid; white-space: nowrap; }
.badge.good { color: var(--good); background: var(--good-wash); } .badge.bad { color: var(--bad); background: var(--bad-wash); }
.badge.warn { color: var(--warn); background: var(--warn-wash); } .badge.accent { color: var(--accent); background: var(--accent-wash); }
.badge.quiet { color: var(--muted); background: var(--track); border-color: var(--rule); }

pre { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 0.8rem 1rem; margin: 0; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5; }
pre.command { white-space: pre; user-select: all; -webkit-user-select: all; }
p + pre.command, ul + pre.command { margin-top: 0.8rem; }
pre.json { max-height: 26rem; overflow: auto; }
footer { margin-top: 3.5rem; border-top: 1px solid var(--rule); padding-top: 1rem; font-size: 0.875rem; color: var(--muted); }

${CHART}

@media (max-width: 40rem) {
  .page { padding: 1.6rem 1rem 3rem; }
  .verdict { padding: 1.1rem; gap: 0.8rem; }
  .verdict-icon { width: 36px; height: 36px; }
  figure { padding: 1rem 0.9rem 0.8rem; }
  .facts > div { grid-template-columns: 6rem 1fr; }
  .dials .tile-figure { height: auto; padding-top: 0.6rem; }
  section { margin-top: 2.6rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  :root { --paper: #fff; --card: #fff; --ink: #000; --muted: #444; --rule: #ccc; --track: #eee; --accent: #2b5f9e; --quiet: #999; --good: #1c7a4a; --bad: #b3261e; --warn: #8a5a00; --good-wash: #fff; --bad-wash: #fff; --warn-wash: #fff; --accent-wash: #fff; }
  body { font-size: 10.5pt; }
  .page { max-width: none; padding: 0; }
  nav, .skip { display: none; }
  figure, tr, pre.command, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .scroll, pre.json { overflow: visible; max-height: none; }
  pre.command { white-space: pre-wrap; }
  .mark, .dial-fill, .dial-track, .verdict-icon circle { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details::details-content { content-visibility: visible; }
}
`;

/** The look of a chart in a file of its own, on light paper: few programs that show SVG know variables. */
export const chartStyle = CHART.replace(
  /var\(--([a-z]+)\)/g,
  (_, name: string) => new RegExp(`--${name}: ([^;]+);`).exec(LIGHT)?.[1] ?? '',
);
