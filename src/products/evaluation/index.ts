/** Whether what an engine computes still does its job: detections by the rules of COCO, transcripts by their word error rate. */

import { contextOptions } from '../../base/options/context.js';
import { atDoor } from '../../base/options/library-words.js';
import { evaluateClassifier as classifier, classifierOptions } from './classification/evaluate-classifier.js';
import { evaluateCoco as coco, cocoOptions } from './coco/coco.js';
import { readDetections as detectionsOf } from './coco/detections.js';
import { readInstances as instancesOf } from './coco/instances.js';
import { compareBackEnds as compare, compareOptions } from './compare/compare-backends.js';
import { detectorOptions } from './detection/detector.js';
import { evaluateDetector as detector } from './detection/evaluate-detector.js';
import { evaluateEmbeddings as embeddings, embeddingsOptions } from './embeddings/evaluate-embeddings.js';
import { evaluate as evaluateWith } from './run/evaluate.js';
import { evaluateRecogniser as recogniser, recogniserRequestOptions } from './speech/evaluate-recogniser.js';
import { scoreTranscripts as transcripts, werOptions } from './wer/wer.js';

export type { WorkContext } from '../../events.js';
export type { Preprocessing } from '../../formats/images/preprocess.js';
export type { Recogniser, Sample } from '../../quality/tasks/task.js';
export type { ClassificationResult } from './classification/classification-result.js';
export type { ClassifierRequest } from './classification/evaluate-classifier.js';
export type { CocoRequest } from './coco/coco.js';
export type { Detections } from './coco/detections.js';
export type { Annotation, DetectionTruth, ImageChoice, ReadingContext } from './coco/instances.js';
export { digestOfTruth } from './coco/instances.js';
export type { CategoryScore, CocoResult, DetectionScores, PrecisionCurve } from './coco/result.js';
export { scoreDetections } from './coco/score.js';
export type { CompareBackEndsRequest, CompareContext } from './compare/compare-backends.js';
export type { Comparison } from './compare/result.js';
export type { EvaluateDetectorRequest } from './detection/detector.js';
export type { DetectorResult, DetectorRun } from './detection/detector-result.js';

export type { EmbeddingsResult } from './embeddings/embeddings-result.js';
export type { EmbeddingsRequest } from './embeddings/evaluate-embeddings.js';
export { type Finding, Findings } from './findings.js';
export type { ImageRequest } from './options.js';
export type { Evaluated, EvaluateOptions, Scorer } from './run/evaluate.js';
export type { ImageFile, ImageSample, ImageSamples } from './run/images.js';
export { imageSamples, preprocessingFor } from './run/images.js';
export type { Variant } from './run/variant.js';
export type { EvaluateRecogniserRequest } from './speech/evaluate-recogniser.js';
export type { RecogniserResult } from './speech/recogniser-result.js';
export type { WerRequest } from './wer/wer.js';
export type { UtteranceScore, WerResult } from './wer/wer-result.js';

export const evaluateClassifier = atDoor(classifier, classifierOptions, contextOptions);
export const evaluateCoco = atDoor(coco, cocoOptions, contextOptions);
export const readDetections = atDoor(detectionsOf);
export const readInstances = atDoor(instancesOf);
export const compareBackEnds = atDoor(compare, compareOptions);
export const evaluateDetector = atDoor(detector, detectorOptions, contextOptions);
export const evaluateEmbeddings = atDoor(embeddings, embeddingsOptions, contextOptions);
export const evaluate = atDoor(evaluateWith);
export const evaluateRecogniser = atDoor(recogniser, recogniserRequestOptions);
export const scoreTranscripts = atDoor(transcripts, werOptions);
