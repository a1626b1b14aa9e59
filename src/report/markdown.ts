import { code, fence, table, text } from '../base/text/markdown-text.js';
import { formatCount, formatStatistic } from '../base/text/quantity.js';
import { predictionText } from '../quality/predictions/prediction.js';
import { type Block, type Item, type Page, present, type Section, type Text } from './blocks.js';
import { onlyWords } from './chart/prediction.js';

const signs = { pass: '✅', fail: '❌', inconclusive: '❔', built: '🔷', error: '❌' } as const;

/** Entries named of an entry's own list; HTML lists more, the JSON all. */
const ITEMS_NAMED = 5;

/** A page as GitHub-flavoured Markdown, for a job summary or a comment on a pull request: all but what HTML folds, charts in words. */
export function renderMarkdown({ name, subtitle, version, startedAt, verdict, sections }: Page): string {
  return [
    `# ${text(name)}: ${signs[verdict.outcome]} ${text(verdict.word)}`,
    [subtitle, `trtforge ${version}`, ...(startedAt === undefined ? [] : [startedAt])].map(text).join(' · '),
    `**${text(verdict.headline)}**`,
    verdict.reasons.map((reason) => `- ${text(reason)}`).join('\n'),
    ...(verdict.remedies ?? []).map(inline),
    ...(verdict.next ?? []).map((line) => fence(line)),
    ...present(sections).flatMap((section) => sectionBlocks(section, '##')),
  ]
    .filter((block) => block !== '')
    .join('\n\n')
    .concat('\n');
}

const sectionBlocks = ({ title, lead, blocks }: Section, level: string): readonly string[] => [
  `${level} ${text(title)}`,
  text(lead),
  ...present(blocks).flatMap((block) => blockTexts(block, level)),
];

function blockTexts(block: Block, level: string): readonly string[] {
  switch (block.kind) {
    case 'facts':
      return [
        table(
          ['what', 'which'],
          block.facts.map(([name, value]) => [text(name), inline(value)]),
        ),
      ];
    case 'table': {
      const titles = block.columns.map((column) => (typeof column === 'string' ? column : column.number));
      return [
        `*${text(block.caption)}*`,
        table(
          titles.map(text),
          block.rows.map((row) => row.map(inline)),
        ),
      ];
    }
    case 'list':
      return [block.items.flatMap((item) => itemLines(item)).join('\n')];
    case 'note':
      return [inline(block.text)];
    case 'charts':
      return block.charts.map(({ chart }) => `*${text(chart.title)}:* ${text(chart.description)}`);
    case 'samples':
      return [samplesTable(block.samples)];
    case 'command':
      return [fence(block.command)];
    case 'part':
      return sectionBlocks(block.section, `${level}#`);
    case 'fold':
    case 'json':
      return [];
  }
}

const samplesTable = (samples: Extract<Block, { kind: 'samples' }>['samples']): string =>
  table(
    ['sample', 'share of the limit', 'original', 'candidate'],
    samples.map(({ file, share, reference, candidate }) => [
      code(file),
      share === null ? '–' : formatStatistic(Number(share)),
      text(predictionText(reference, onlyWords.reference)),
      text(predictionText(candidate, onlyWords.candidate)),
    ]),
  );

function itemLines({ label, text: entry, note, items = [] }: Item): readonly string[] {
  const more = items.length - ITEMS_NAMED;
  const named = items.slice(0, ITEMS_NAMED).flatMap((item) => itemLines(item));
  return [
    `- ${label === undefined ? '' : `${text(label.text)}: `}${inline(entry)}${note === undefined ? '' : `: ${text(note)}`}`,
    ...[...named, ...(more > 0 ? [`- and ${formatCount(more)} more`] : [])].map((line) => `  ${line}`),
  ];
}

function inline(content: Text): string {
  if (typeof content === 'string') return text(content);
  if (!('mark' in content)) return content.map(inline).join('');
  switch (content.mark) {
    case 'code':
      return code(content.text);
    case 'strong':
      return `**${text(content.text)}**`;
    case 'muted':
    case 'heat':
      return text(content.text);
    case 'badge':
      return content.tone === 'bad' ? `**${text(content.text)}**` : text(content.text);
    case 'lines':
      return content.lines.map(inline).join('; ');
  }
}
