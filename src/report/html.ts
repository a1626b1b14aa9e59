import { formatCount } from '../base/text/quantity.js';
import {
  type Block,
  type Figure,
  type Item,
  type Page,
  type PageVerdict,
  present,
  type Section,
  type Text,
} from './blocks.js';
import { drawChart } from './chart/frame.js';
import { drawSample, noPictures, type Pictures, pictureDefinitions } from './chart/prediction.js';
import type { Outcome } from './forge-result.js';
import { type Content, htmlFile, jsonIsland, type Markup, markup, ownSource } from './markup/markup.js';
import { pageStyle } from './markup/style.js';

/** A press puts the line of a command into the clipboard, and selects it where the browser allows no more. */
const copyScript = `for (const button of document.querySelectorAll('.copy')) {
  button.hidden = false;
  button.onblur = () => { button.textContent = 'Copy'; };
  button.onclick = () => {
    const line = button.previousElementSibling;
    getSelection().selectAllChildren(line);
    const done = (word) => () => { button.textContent = word; };
    navigator.clipboard.writeText(line.textContent).then(done('Copied'), done('Selected'));
  };
}`;

/** An entry with thousands of its own stays readable: the page lists this many, the JSON all of them. */
const ITEMS_LISTED = 200;

/** A page as one HTML file that needs no network, with a script that copies commands. The result is inside as JSON, under the id `result`; `pictures` are those of its samples. */
export function renderHtml(page: Page, result: unknown, pictures = noPictures): string {
  const { name, verdict, version, dataFile } = page;
  const sections = present(page.sections);
  const title = `${name}: ${verdict.word.toLowerCase()}`;
  const body = markup`<a class="skip" href="#${sections[0]?.id ?? 'result'}">Skip to the results</a>
<div class="page">
${header(page)}
<nav aria-label="Contents"><ol>${sections.map(({ id, title }) => markup`<li><a href="#${id}">${title}</a></li>`)}</ol></nav>
${pictureDefinitions(pictures)}<main>
${sections.map((section) => sectionMarkup(section, pictures))}
</main>
<footer><p>Written by trtforge ${version}. This page needs no network; its data is inside it as JSON${dataFile && ` and beside it as ${dataFile}`}.</p></footer>
</div>
<script type="application/json" id="result">${jsonIsland(result)}</script>
<script>${ownSource(copyScript)}</script>`;
  return htmlFile({ title, body }, { version, style: pageStyle, script: copyScript });
}

function header({ name, subtitle, kind, version, startedAt, verdict, figures = [] }: Page): Markup {
  const time =
    startedAt === undefined
      ? null
      : markup` · <time datetime="${startedAt}">${startedAt.slice(0, 10)} ${startedAt.slice(11, 16)} UTC</time>`;
  return markup`<header><p class="kicker">trtforge ${version}${kind && ` · ${kind}`}${time}</p><h1>${name}</h1><p class="subtitle">${subtitle}</p>${banner(verdict)}${figures.length > 0 && markup`<ul class="dials">${figures.map(figure)}</ul>`}</header>`;
}

const icons: Readonly<Record<Outcome, Markup>> = {
  pass: markup`<path d="M13 25.5 21 33 36 16"/>`,
  fail: markup`<path d="M16 16 32 32M32 16 16 32"/>`,
  error: markup`<path d="M24 13v14M24 34v.5"/>`,
  built: markup`<path d="M14.5 19 24 14l9.5 5v10.5L24 35l-9.5-5.5zM14.5 19l9.5 5.5 9.5-5.5M24 24.5V35"/>`,
  inconclusive: markup`<path d="M17.5 19c0-8 13-8 13 0 0 5-6.5 5-6.5 10M24 34.5v.5"/>`,
};

const banner = ({ outcome, word, headline, reasons, remedies = [], next = [] }: PageVerdict): Markup =>
  markup`<div class="verdict ${outcome}" role="status"><svg class="verdict-icon" viewBox="0 0 48 48" width="48" height="48" aria-hidden="true"><circle cx="24" cy="24" r="22"/>${icons[outcome]}</svg><div><p class="verdict-word">${word}</p><p class="verdict-headline">${headline}</p>${reasons.length > 0 && markup`<ul>${reasons.map((reason) => markup`<li>${reason}</li>`)}</ul>`}${remedies.map((remedy) => markup`<p class="remedy">${inline(remedy)}</p>`)}${next.map(commandMarkup)}</div></div>`;

const commandMarkup = (line: string): Markup =>
  markup`<div class="typed"><pre class="command" tabindex="0"><code>${line}</code></pre><button type="button" class="copy" aria-live="polite" hidden>Copy</button></div>`;

const RADIUS = 42;
const AROUND = 2 * Math.PI * RADIUS;

/** A share as a ring filled that far with the number in the middle; any other number as a tile. */
function figure({ text, name, ring }: Figure, index: number): Markup {
  if (ring === undefined)
    return markup`<li class="tile"><p class="tile-figure">${text}</p><p>${name}</p></li>`;
  const filled = AROUND * Math.min(1, Math.max(0, ring.share));
  const id = `figure-${index + 1}`;
  return markup`<li><svg class="dial" role="img" aria-labelledby="${id}-title ${id}-text" viewBox="0 0 100 100" width="104" height="104" xmlns="http://www.w3.org/2000/svg"><title id="${id}-title">${text} ${name}</title><desc id="${id}-text">${ring.description}</desc><circle class="dial-track" cx="50" cy="50" r="${RADIUS}"/><circle class="dial-fill ${ring.tone}" cx="50" cy="50" r="${RADIUS}" stroke-dasharray="${filled.toFixed(2)} ${AROUND.toFixed(2)}" transform="rotate(-90 50 50)"/><text class="dial-figure" x="50" y="51" text-anchor="middle" dominant-baseline="middle">${text}</text></svg><p>${name}</p></li>`;
}

const sectionMarkup = ({ id, title, lead, blocks }: Section, pictures: Pictures): Markup =>
  markup`<section id="${id}" aria-labelledby="${id}-heading"><h2 id="${id}-heading">${title}</h2><p class="lead">${lead}</p>${blocksMarkup(blocks, id, pictures)}</section>`;

/** `id` begins the ids of what is inside. */
const blocksMarkup = (blocks: Section['blocks'], id: string, pictures: Pictures): readonly Markup[] =>
  present(blocks).map((block, index) => blockMarkup(block, id, index, pictures));

function blockMarkup(block: Block, id: string, index: number, pictures: Pictures): Markup {
  switch (block.kind) {
    case 'facts':
      return markup`<dl class="facts">${block.facts.map(([name, value]) => markup`<div class="${isCode(value) ? 'wide' : 'narrow'}"><dt>${name}</dt><dd>${inline(value)}</dd></div>`)}</dl>`;
    case 'table':
      return tableMarkup(block);
    case 'list':
      return markup`<ul class="findings">${block.items.map(itemMarkup)}</ul>`;
    case 'note':
      return markup`<p class="remedy">${inline(block.text)}</p>`;
    case 'charts': {
      const figures = block.charts.map(
        ({ chart, caption }, place) =>
          markup`<figure>${drawChart(chart, `${id}-chart-${index}-${place}`)}<figcaption>${inline(caption)}</figcaption></figure>`,
      );
      return figures.length === 1 ? markup`${figures}` : markup`<div class="figures">${figures}</div>`;
    }
    case 'samples': {
      const drawn = block.samples.map((sample, place) =>
        drawSample(sample, pictures, `${id}-sample-${index}-${place}`),
      );
      return markup`${drawn}`;
    }
    case 'command':
      return commandMarkup(block.command);
    case 'json':
      return markup`<pre class="json" tabindex="0"><code>${JSON.stringify(block.value, null, 2)}</code></pre>`;
    case 'fold':
      return markup`<details><summary>${block.title}</summary><div>${blocksMarkup(block.blocks, `${id}-${index}`, pictures)}</div></details>`;
    case 'part': {
      const { title, lead, blocks } = block.section;
      const inner = `${id}-${block.section.id}`;
      return markup`<h3 id="${inner}">${title}</h3><p>${lead}</p>${blocksMarkup(blocks, inner, pictures)}`;
    }
  }
}

const isCode = (value: Text): boolean =>
  typeof value !== 'string' && 'mark' in value && value.mark === 'code';

/** Wide tables scroll in their own box, which a keyboard can reach. */
export function tableMarkup({ caption, columns, rows, isMap }: Extract<Block, { kind: 'table' }>): Markup {
  const kindOf = (index: number) => (typeof columns[index] === 'string' ? 'words' : 'number');
  const heads = columns.map((column, index) => {
    const title = typeof column === 'string' ? column : column.number;
    return title === '' ? markup`<td></td>` : markup`<th scope="col" class="${kindOf(index)}">${title}</th>`;
  });
  const cell = (content: Text, index: number) =>
    index === 0
      ? markup`<th scope="row" class="${kindOf(index)}">${inline(content)}</th>`
      : markup`<td class="${kindOf(index)}"${isMap && markup` data-column="${columns[index] as string}"`}>${inline(content)}</td>`;
  return markup`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table${isMap && markup` class="map"`}><caption><span>${caption}</span></caption><thead><tr>${heads}</tr></thead><tbody>${rows.map((row) => markup`<tr>${row.map(cell)}</tr>`)}</tbody></table></div>`;
}

function itemMarkup({ label, text, note, items }: Item): Markup {
  const what = markup`${label && [badge(label.text, label.tone), ' ']}${inline(text)}${note && markup` <span class="why">${note}</span>`}`;
  if (items === undefined) return markup`<li>${what}</li>`;
  const more = items.length - ITEMS_LISTED;
  return markup`<li><details><summary>${what}</summary><ul class="nodes">${items.slice(0, ITEMS_LISTED).map(itemMarkup)}</ul>${more > 0 && markup`<p class="muted">and ${formatCount(more)} more in the JSON</p>`}</details></li>`;
}

/** A longer line of a cell is a sentence, which takes a column of its own width. */
const LONGEST_UNBROKEN = 30;

const badge = (text: string, tone: string): Markup => markup`<span class="badge ${tone}">${text}</span>`;

function inline(content: Text): Content {
  if (typeof content === 'string') return content;
  if (!('mark' in content)) return content.map(inline);
  switch (content.mark) {
    case 'code':
      return markup`<code>${content.text}</code>`;
    case 'strong':
      return markup`<strong>${content.text}</strong>`;
    case 'muted':
      return markup`<span class="muted">${content.text}</span>`;
    case 'badge':
      return badge(content.text, content.tone);
    case 'heat':
      return markup`<span class="heat h${Math.round(10 * content.share)}">${content.text}</span>`;
    case 'lines':
      return content.lines.map((line) => {
        const length = typeof line === 'string' ? line.length : LONGEST_UNBROKEN;
        const kind = length < LONGEST_UNBROKEN ? 'short' : length > LONGEST_UNBROKEN ? 'long' : '';
        return markup`<span class="line ${kind}">${inline(line)}</span>`;
      });
  }
}
