import type { GateResult } from './gate-result.js';

/** GitHub keeps ten annotations of each level per step; the rest would be dropped without a word. */
const MOST_OF_A_LEVEL = 10;

type Level = 'error' | 'warning' | 'notice';

/**
 * Problems as GitHub's workflow commands, one a line: `::error file=…,line=…,title=…::message`, escaped so that no value can begin a command of its
 * own. Failures and inconclusive checks are errors, warnings warnings; what does not fit GitHub's ten of a level is counted in the last one.
 */
export function githubAnnotations(result: GateResult): readonly string[] {
  const noted = [
    ...result.findings.map(({ outcome, check, result: name, message, line }) => ({
      level: levelOf(outcome),
      title: `${check ?? 'result'}${name === null ? '' : ` (${name})`}`,
      message,
      line,
    })),
    ...result.waivers.map(({ outcome, check, message, line }) => ({
      level: levelOf(outcome),
      title: `waiver for ${check}`,
      message,
      line,
    })),
  ];
  return (['error', 'warning', 'notice'] as const).flatMap((level) => {
    const all = noted.filter((each) => each.level === level);
    const shown = all.length > MOST_OF_A_LEVEL ? all.slice(0, MOST_OF_A_LEVEL - 1) : all;
    const lines = shown.map(({ title, message, line }) =>
      command(level, place(result.policy, line, title), message),
    );
    const rest = all.length - shown.length;
    return rest === 0
      ? lines
      : [
          ...lines,
          command(
            level,
            place(result.policy, null, 'trtforge gate'),
            `and ${rest} more; the summary has all.`,
          ),
        ];
  });
}

function levelOf(outcome: string): Level | null {
  if (outcome === 'fail' || outcome === 'inconclusive') return 'error';
  if (outcome === 'warn') return 'warning';
  return outcome === 'waived' ? 'notice' : null;
}

function place(policy: string, line: number | null, title: string): Readonly<Record<string, string>> {
  return { file: policy, ...(line === null ? {} : { line: String(line) }), title };
}

function command(level: Level, properties: Readonly<Record<string, string>>, message: string): string {
  const list = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(value)}`);
  return `::${level} ${list.join(',')}::${escapeData(message)}`;
}

/** GitHub's own escapes for what follows the second `::`. */
const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

/** The same for a property, which a comma or colon would end. */
const escapeProperty = (text: string): string =>
  escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
