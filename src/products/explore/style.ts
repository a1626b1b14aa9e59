/** The look of the page, on top of that of reports: a table that fills the window. */
export const exploreStyle = `
[hidden] { display: none !important; }
#app { display: flex; flex-direction: column; height: 100dvh; padding: 0.8rem 1rem; gap: 0.5rem; }
#app header h1 { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; margin: 0; }
#app header p, .tools { margin: 0; font-size: 0.875rem; line-height: 1.5; overflow-wrap: anywhere; }
#app header ul { margin: 0; font-size: 0.85rem; }
#app header details { border: 0; padding: 0; font-size: 0.85rem; }
main { flex: 1; min-height: 0; display: flex; flex-direction: column; gap: 0.5rem; }
.tools { display: flex; flex-wrap: wrap; gap: 0.4rem 0.8rem; align-items: center; }
.tools button, .tools input:not([type="checkbox"]), .tools select { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--muted); border-radius: 6px; padding: 0.15rem 0.6rem; min-height: 1.75rem; }
.tools button { cursor: pointer; }
.tools button[aria-pressed="true"] { background: var(--ink); color: var(--paper); }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 0.8rem; }
.tone::before { content: ""; display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; margin-right: 0.35em; background: currentColor; }
.tone.accent { color: var(--accent); } .tone.good { color: var(--good); } .tone.warn { color: var(--warn); } .tone.bad { color: var(--bad); } .tone.ink { color: var(--ink); } .tone.quiet { color: var(--muted); }
.layers { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 1fr) 24rem; gap: 0.8rem; }
.grid { display: flex; min-width: 0; min-height: 0; border: 1px solid var(--rule); border-radius: 8px; background: var(--card); overflow: hidden; }
.lanes { flex: none; height: 100%; }
.strip { flex: none; width: 2.2rem; height: 100%; cursor: pointer; touch-action: none; border-left: 1px solid var(--rule); }
.scroller { flex: 1; min-width: 0; overflow: auto; overscroll-behavior: contain; overflow-anchor: none; contain: strict; }
.scroller table { border: 0; border-collapse: separate; border-spacing: 0; width: max-content; min-width: 100%; table-layout: fixed; font-size: 0.82rem; outline-offset: -3px; }
.scroller tbody[aria-hidden] td { padding: 0; border: 0; }
.scroller thead th { position: sticky; top: 0; z-index: 1; height: 34px; padding: 0; border: 0; box-shadow: inset 0 -1px var(--ink); background: var(--card); }
.scroller thead th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0 0.5rem; height: 33px; width: 100%; text-align: inherit; cursor: pointer; }
.scroller tbody:not([aria-hidden]) tr { height: 26px; }
.scroller tbody:not([aria-hidden]) tr > * { height: 26px; line-height: 25px; padding: 0 0.5rem; border: 0; box-shadow: inset 0 -1px var(--rule); max-width: 0; overflow: clip; text-overflow: ellipsis; white-space: nowrap; background: var(--card); }
.scroller .words { width: 9rem; }
.scroller .number { width: 5.6rem; }
.scroller tr .wide { width: 17rem; }
.scroller tr > :first-child { position: sticky; left: 0; min-width: 0; }
.scroller thead tr > :first-child { z-index: 2; }
.scroller tr.scope > * { font-weight: 600; }
.scroller tbody tr[aria-selected="true"] > * { background: var(--accent-wash); }
.details h2::before, .details h3::before { content: none; }
.details { overflow: auto; min-height: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 0.8rem 1rem; font-size: 0.85rem; line-height: 1.5; }
.details h2 { font-size: 1rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
.details h3 { font-size: 0.85rem; margin: 0.9rem 0 0.2rem; }
.details dl { margin: 0; }
.details dl > div { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: 0.5rem; }
.details dt { color: var(--muted); }
.details dd { margin: 0; overflow-wrap: anywhere; }
.details details { border: 0; padding: 0.5rem 0 0; }
.details details > dl { margin: 0.4rem 0 0; }
.tensors { margin: 0; padding-left: 1.1rem; overflow-wrap: anywhere; }
.link { font: inherit; color: var(--accent); background: none; border: 0; padding: 0; text-decoration: underline; cursor: pointer; overflow-wrap: anywhere; text-align: left; margin-right: 0.6em; }
.picture { overflow: auto; max-height: 24rem; border: 1px solid var(--rule); border-radius: 6px; }
.picture svg { display: block; }
.edge { fill: none; stroke: var(--muted); stroke-width: 1.2; }
.node { cursor: pointer; }
.node rect { fill: var(--card); stroke: var(--muted); stroke-width: 1.5; }
.node.accent rect { stroke: var(--accent); } .node.good rect { stroke: var(--good); } .node.warn rect { stroke: var(--warn); } .node.bad rect { stroke: var(--bad); }
.node.centre rect { fill: var(--accent-wash); stroke-width: 3; }
.node text { font: 11px var(--mono); fill: var(--ink); }
.by-operator { overflow: auto; }
.by-operator table { max-width: 52rem; }
.by-operator thead th::first-letter, .by-operator tbody tr:last-child th::first-letter { text-transform: uppercase; }
.by-operator tbody tr:last-child > * { font-weight: 700; border-top: 1px solid var(--ink); }
@media (max-width: 60rem) {
  #app { height: auto; padding: 0.6rem; }
  .layers { grid-template-columns: minmax(0, 1fr); }
  .grid { height: 68vh; }
  .details { overflow: visible; }
  .strip { width: 1.2rem; }
  .keys { display: none; }
  .scroller tr .wide { width: 9.5rem; }
}
`;
