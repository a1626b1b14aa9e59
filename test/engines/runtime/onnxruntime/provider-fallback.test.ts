import { describe, expect, it } from 'vitest';
import { nodesInProfile } from '../../../../src/engines/runtime/onnxruntime/ort-profile.js';
import {
  placementOf,
  placementWarnings,
  rejectFallback,
} from '../../../../src/engines/runtime/onnxruntime/provider-fallback.js';
import {
  executionProviders,
  ortBackend,
  providerInBackend,
} from '../../../../src/engines/runtime/onnxruntime/provider-options.js';

const event = (name: string, op_name: string, provider: string, node_index = '0') => ({
  cat: 'Node',
  name,
  args: { op_name, provider, node_index },
});

describe('what ONNX Runtime records of a run', () => {
  it('counts a node once however often a loop ran it, and no copies', () => {
    const events = [
      { cat: 'Session', name: 'model_loading_uri', args: {} },
      event('a_kernel_time', 'Add', 'CUDAExecutionProvider'),
      event('a_kernel_time', 'Add', 'CUDAExecutionProvider'),
      event('Memcpy_token_1_kernel_time', 'MemcpyToHost', 'CUDAExecutionProvider', '7'),
      event('_kernel_time', 'Where', 'CPUExecutionProvider', '1'),
      event('_kernel_time', 'Gather', 'CPUExecutionProvider', '2'),
    ];
    const placement = placementOf(nodesInProfile(JSON.stringify(events)), 'cuda');
    expect(placement).toEqual({
      providers: [
        { provider: 'CUDAExecutionProvider', nodes: 1 },
        { provider: 'CPUExecutionProvider', nodes: 2 },
      ],
      fallback: [
        { provider: 'CPUExecutionProvider', name: '', operator: 'Where' },
        { provider: 'CPUExecutionProvider', name: '', operator: 'Gather' },
      ],
    });
    expect(placementWarnings(placement)).toEqual([
      expect.stringMatching(/^2 of 3 nodes .*: Gather, Where\.$/),
    ]);
    expect(() => rejectFallback(placement, 'cuda', true)).not.toThrow();
    expect(() => rejectFallback(placement, 'cuda', false)).toThrow(/unnamed \(Where\), unnamed \(Gather\)/);
  });

  it.each(['', '{', '[1]', '{"a":1}', '[{"cat":3}]'])('%j is not one', (text) => {
    expect(() => nodesInProfile(text)).toThrow(expect.objectContaining({ code: 'TF_ONNXRUNTIME_FAILED' }));
  });

  it('has no warning where all is where it should be', () => {
    const all = { providers: [{ provider: 'CUDAExecutionProvider', nodes: 5 }], fallback: [] };
    expect(placementWarnings(all)).toEqual([]);
    expect(placementWarnings(null)).toEqual([]);
    expect(() => rejectFallback(all, 'cuda', false)).not.toThrow();
  });
});

describe('the provider in the name of a backend', () => {
  it.each([
    ['CPU', ortBackend('1.30.0', {})],
    ['CUDA', ortBackend('1.30.0', { provider: 'cuda', device: 2 })],
    ['CUDA', ortBackend('1.30.0', { provider: 'cuda' }, { tf32: true })],
    ['TensorRT', ortBackend('1.30.0', { provider: 'tensorrt' }, { tensorrt: '10.6.0.26' })],
    [undefined, 'TensorRT 10.6.0.26 (NVIDIA H200)'],
  ])('%s is read out of %s', (provider, backend) => {
    expect(providerInBackend(backend)).toBe(provider);
  });

  it('has ONNX Runtime’s own spelling in lists', () => {
    expect(executionProviders('TensorRT')).toEqual(['TensorrtExecutionProvider', 'CPUExecutionProvider']);
  });
});
