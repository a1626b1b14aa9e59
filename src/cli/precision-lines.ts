import { plural } from '../base/text/quantity.js';
import type { LayerPrecisions } from '../engines/identity/passport.js';
import { floatingNodes, floatingSentence, layerSentences } from '../report/layer-sentences.js';
import type { TextOutput } from './command.js';

/** Groups of nodes that are listed; --json has them all. */
const LISTED_GROUPS = 5;

/** Lines on the types that a quantized model's layers compute in, and on nodes quantized in vain. */
export function precisionLines(precisions: LayerPrecisions, { dim, yellow }: TextOutput['colors']): string[] {
  const groups = floatingNodes(precisions);
  const more = groups.length - LISTED_GROUPS;
  return [
    ...layerSentences(precisions),
    ...precisions.attentions.reasons.map((reason) => `${yellow('!')} ${reason}`),
    ...groups.slice(0, LISTED_GROUPS).map((group) => {
      const sentence = floatingSentence(group);
      return group.isProblem ? `${yellow('!')} ${sentence}` : dim(sentence);
    }),
    ...(more > 0 ? [dim(`${plural(more, 'more reason')} with --json`)] : []),
  ];
}
