/** Task metrics: `import { scoreTranscripts } from 'trtforge/evaluation'`. */
export { scoreTranscripts, type WerRequest } from './speech/wer.js';
export type { UtteranceScore, WerResult } from './speech/wer-result.js';
