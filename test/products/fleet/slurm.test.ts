import { describe, expect, test } from 'vitest';
import { type SlurmWhere, slurmScript } from '../../../src/products/fleet/schedulers/slurm.js';
import { whereSchema } from '../../../src/products/fleet/schedulers/where.js';
import { codeOf } from '../../support/refusal.js';
import { submission } from './sample-plan.js';

const where = (slurm: Record<string, unknown>): SlurmWhere => {
  const parsed = whereSchema.parse({ slurm });
  if (parsed === 'local' || parsed.slurm === undefined) throw new Error('not of Slurm');
  return parsed.slurm;
};

/** The words of `#SBATCH` lines as `_get_argument` of sbatch reads them: all of a line, split at blanks outside quotes. */
function sbatchWords(script: string): readonly string[] {
  const lines = script.split('\n').filter((line) => line.startsWith('#SBATCH'));
  return lines.flatMap((line) => {
    const words: string[] = [];
    let [word, quote, isEscaped, isOpen] = ['', '', false, false];
    for (const letter of line.slice('#SBATCH'.length)) {
      if (isEscaped) [word, isEscaped, isOpen] = [word + letter, false, true];
      else if (letter === '\\') isEscaped = true;
      else if (quote !== '') {
        if (letter === quote) quote = '';
        else word += letter;
      } else if (letter === '"' || letter === "'") [quote, isOpen] = [letter, true];
      else if (letter === '#') break;
      else if (/\s/.test(letter)) {
        if (isOpen) words.push(word);
        [word, isOpen] = ['', false];
      } else [word, isOpen] = [word + letter, true];
    }
    if (isOpen) words.push(word);
    return words;
  });
}

/** The value of a word that stands once. */
function valueIn(script: string, name: string): string | undefined {
  const found = sbatchWords(script).filter((word) => word === name || word.startsWith(`${name}=`));
  expect(found.length).toBeLessThanOrEqual(1);
  return found[0]?.slice(name.length + 1);
}

describe('a batch script', () => {
  const script = slurmScript(
    submission(),
    where({
      constraint: 'sm_89',
      gres: 'gpu:l4:1',
      partition: 'gpu',
      'at-once': 2,
      environment: ['AWS_PROFILE'],
    }),
  );

  test('is one array whose indices are those of the plan', () => {
    expect(valueIn(script, '--array')).toBe('0,1,2,5%2');
    expect(valueIn(script, '--job-name')).toBe('trtforge-0123456789ab');
    expect(valueIn(script, '--chdir')).toBe('/models');
    expect(script).toMatch(/^exec trtforge fleet work \S+0123456789ab\.json --jobs "\$SLURM_ARRAY_TASK_ID"/m);
  });

  test('asks for one GPU, comes back after a node is lost, and is warned before its time ends', () => {
    expect(valueIn(script, '--gres')).toBe('gpu:l4:1');
    expect(valueIn(script, '--constraint')).toBe('sm_89');
    expect(valueIn(script, '--partition')).toBe('gpu');
    expect(valueIn(script, '--requeue')).toBe('');
    expect(valueIn(script, '--signal')).toBe('B:TERM@60');
    expect(valueIn(slurmScript(submission(), where({})), '--gres')).toBe('gpu:1');
  });

  test('passes variables on by name alone', () => {
    expect(valueIn(script, '--export')).toBe('PATH,HOME,AWS_PROFILE');
    expect(valueIn(slurmScript(submission(), where({})), '--export')).toBe('PATH,HOME');
  });

  test('runs in a container that has the folder of the plan', () => {
    const image = 'nvcr.io#team/trt:10.13';
    const inContainer = slurmScript(submission(), where({ image, mounts: ['/data:/data:ro'] }));
    expect(valueIn(inContainer, '--container-image')).toBe(image);
    expect(valueIn(inContainer, '--container-mounts')).toBe('/models:/models,/data:/data:ro');
    expect(valueIn(inContainer, '--container-workdir')).toBe('/models');
  });

  test("a user's options come after those that they may replace and before the others", () => {
    const words = sbatchWords(slurmScript(submission(), where({ options: ['--no-requeue', '--array=7'] })));
    expect(words.indexOf('--no-requeue')).toBeGreaterThan(words.indexOf('--requeue'));
    expect(words.lastIndexOf('--array=0,1,2,5')).toBeGreaterThan(words.indexOf('--array=7'));
  });

  test.each([
    ['spaces', '/my models/x'],
    ['quotes', `/it's "x"`],
    ['a comment', '/a #b'],
    ['a substitution', '/$(touch x)`y`'],
    ['a backslash', '/a\\"b'],
  ])('%s in a value stay in it', (_, text) => {
    const hostile = slurmScript(
      submission({ plan: { id: '0123456789ab', folder: text } }),
      where({ constraint: text, options: [`--comment=${text}`] }),
    );
    expect(valueIn(hostile, '--chdir')).toBe(text);
    expect(valueIn(hostile, '--constraint')).toBe(text);
    expect(valueIn(hostile, '--comment')).toBe(text);
    const plain = slurmScript(submission(), where({ constraint: 'c', options: ['--comment=c'] }));
    expect(hostile.split('\n').length).toBe(plain.split('\n').length);
  });

  test('an address is one word of the shell', () => {
    const script = slurmScript(submission({ address: "/s'$(x)/fleet/0123456789ab.json" }), where({}));
    expect(script).toContain(`work '/s'\\''$(x)/fleet/0123456789ab.json' --jobs`);
  });

  test.each(['a\n#SBATCH --x', 'a\r', 'a\u2028b', '\0'])(
    'a value of more than a line is rejected: %j',
    (text) => {
      expect(codeOf(() => slurmScript(submission({ address: text }), where({})))).toBe('TF_USAGE');
      expect(codeOf(() => slurmScript(submission({ plan: { id: '0', folder: text } }), where({})))).toBe(
        'TF_USAGE',
      );
      for (const slurm of [{ constraint: text }, { options: [`--x=${text}`] }, { environment: [text] }])
        expect(whereSchema.safeParse({ slurm }).success).toBe(false);
    },
  );
});
