import { page } from './page.js';
import type { SectionFacts } from './parts.js';
import type { ForgeResult } from './result.js';
import { accuracySection, engineAccuracySection } from './section/accuracy.js';
import { engineSection, sizesSection } from './section/engine.js';
import { environmentSection, repeatSection } from './section/environment.js';
import { modelSection } from './section/model.js';
import { phasesSection } from './section/phases.js';
import { precisionSection } from './section/precision.js';
import { speedSection } from './section/speed.js';
import { verdictHeader } from './section/verdict.js';
import { modelName, outcomeWord } from './sentences.js';

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

/** The report as one HTML file that needs no network and no script. The result itself is inside as JSON, under the id `result`. */
export function renderHtml(result: ForgeResult): string {
  return page({
    title: `${modelName(result)}: ${outcomeWord[result.verdict.outcome].toLowerCase()} · trtforge`,
    version: result.version,
    header: verdictHeader(result),
    sections: sections.map((describe) => describe(result)).filter((facts) => facts !== null),
    dataBeside: ' and beside it as report.json',
    result,
  });
}
