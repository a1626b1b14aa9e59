/** Whether what an engine computes still does its job: detections by the rules of COCO, transcripts by their word error rate. */

export type { WorkContext } from '../../events.js';
export type { Preprocessing } from '../../formats/images/preprocess.js';
export type { Recogniser } from '../../quality/tasks/recogniser.js';
export type { Sample } from '../../quality/tasks/task.js';
export type { ClassificationResult } from './classification/classification-result.js';
export { type ClassifierRequest, evaluateClassifier } from './classification/evaluate-classifier.js';
export { type CocoRequest, evaluateCoco } from './coco/coco.js';
export { type Detections, readDetections } from './coco/detections.js';
export {
  type Annotation,
  type DetectionTruth,
  digestOfTruth,
  type ImageChoice,
  type ReadingContext,
  readInstances,
} from './coco/instances.js';
export type { CategoryScore, CocoResult, DetectionScores, PrecisionCurve } from './coco/result.js';
export { scoreDetections } from './coco/score.js';
export {
  type CompareBackEndsRequest,
  type CompareContext,
  compareBackEnds,
} from './compare/compare-backends.js';
export type { Comparison } from './compare/result.js';
export type { DetectorResult, DetectorRun } from './detection/detector-result.js';
export { type EvaluateDetectorRequest, evaluateDetector } from './detection/evaluate-detector.js';
export type { EmbeddingsResult } from './embeddings/embeddings-result.js';
export { type EmbeddingsRequest, evaluateEmbeddings } from './embeddings/evaluate-embeddings.js';
export { type Finding, Findings } from './findings.js';
export {
  type Evaluated,
  type EvaluateOptions,
  evaluate,
  type Scorer,
} from './run/evaluate.js';
export {
  type ImageFile,
  type ImageRequest,
  type ImageSample,
  type ImageSamples,
  imageSamples,
  preprocessingFor,
} from './run/images.js';
export type { Variant } from './run/variant.js';
export { type EvaluateRecogniserRequest, evaluateRecogniser } from './speech/evaluate-recogniser.js';
export type { RecogniserResult } from './speech/recogniser-result.js';
export { scoreTranscripts, type WerRequest } from './wer/wer.js';
export type { UtteranceScore, WerResult } from './wer/wer-result.js';
