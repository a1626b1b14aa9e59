import { plural } from '../../base/text/quantity.js';
import { markup } from '../markup.js';
import { code, facts, type SectionFacts, table } from '../parts.js';
import type { ForgeResult } from '../result.js';

/** What the run ran on. */
export function environmentSection({ environment }: Pick<ForgeResult, 'environment'>): SectionFacts | null {
  if (environment.length === 0) return null;
  return {
    id: 'environment',
    title: 'Environment',
    lead: 'The machine and the versions that this result belongs to.',
    body: facts(environment.map(({ name, text }) => [name, text] as const)),
  };
}

/** The commands that repeat each step alone, and where the run left its files. */
export function repeatSection(
  result: Pick<ForgeResult, 'repeat' | 'files' | 'runRoot'>,
): SectionFacts | null {
  return {
    id: 'repeat',
    title: 'Repeat it',
    lead: `${plural(result.repeat.length, 'command')}, to run again as a whole or step by step. A click selects a command.`,
    body: [
      markup`<ol class="commands">${result.repeat.map(({ step, command }) => markup`<li><p>${step}</p><pre tabindex="0"><code>${command}</code></pre></li>`)}</ol>`,
      result.files.length > 0 &&
        table(
          `Files of the run, in ${result.runRoot}`,
          [{ title: 'file' }, { title: 'what it is' }],
          result.files.map((file) => [code(file.path), file.what]),
        ),
    ],
  };
}
