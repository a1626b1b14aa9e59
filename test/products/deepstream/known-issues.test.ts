import { expect, test } from 'vitest';
import { deepstreamIssues } from '../../../src/products/deepstream/known-issues.js';
import { explainLines } from '../../../src/quality/explain/explain.js';

const nvinfer = (severity: string, text: string) =>
  `0:00:09.303505002 18243 0xaaaadb449980 ${severity.padEnd(20)} nvinfer gstnvinfer.cpp:676:gst_nvinfer_logger:<primary_gie> NvDsInferContext[UID 1]: ${text}`;

test.each([
  [nvinfer('ERROR', 'Could not find output coverage layer for parsing objects'), 'nvinfer-parser-not-set'],
  [
    nvinfer('ERROR', 'failed to init resource because dlsym failed to get func NvDsInferParseYolo  pointer'),
    'nvinfer-function-missing',
  ],
  ['ERROR: nvinfer error:NVDSINFER_CUSTOM_LIB_FAILED', 'nvinfer-function-missing'],
  [
    'WARNING: Deserialize engine failed because file path: /opt/app/model_b1_gpu0_fp32.engine open error',
    'nvinfer-engine-missing',
  ],
])('%s is %s', (line, id) => {
  const { issues } = explainLines('log', [line], { knownIssues: deepstreamIssues });
  expect(issues.map((issue) => issue.id)).toEqual([id]);
});
