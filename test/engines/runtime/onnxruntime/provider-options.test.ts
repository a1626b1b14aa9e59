import { describe, expect, it } from 'vitest';
import {
  type OrtProvider,
  optionsFor,
  resolveProvider,
} from '../../../../src/engines/runtime/onnxruntime/provider-options.js';

describe('options of a provider', () => {
  it.each([
    ['cuda', { use_tf33: '1' }, /Did you mean .*use_tf32/i],
    ['cuda', { trt_fp16_enable: '1' }, /./],
    ['cpu', { use_tf32: '1' }, /./],
    ['tensorrt', { trt_cuda_graph_enable: '1' }, /./],
    ['tensorrt', { device_id: '1' }, /./],
  ] as const)('%s rejects %j', (provider, providerOptions, message) => {
    expect(() => resolveProvider({ provider, providerOptions }, {})).toThrow(
      expect.objectContaining({
        code: 'TF_USAGE',
        message: expect.stringMatching(message),
        details: expect.objectContaining({ option: '--provider-option' }),
      }),
    );
  });

  it('with a dot in the key are entries of the session, on every provider', () => {
    const providerOptions = { 'session.disable_prepacking': '1', 'ep.context_enable': '1' };
    for (const provider of ['cpu', 'cuda', 'tensorrt'] as const)
      expect(resolveProvider({ provider, providerOptions }, {}).config).toEqual(
        expect.arrayContaining(Object.entries(providerOptions)),
      );
  });

  it.each([
    ['cuda', {}, undefined, false, '0'],
    ['cuda', {}, '1', true, '1'],
    ['cuda', { use_tf32: '1' }, undefined, true, undefined],
    ['cuda', { use_tf32: '1' }, '0', false, '0'],
    ['cuda', { use_tf32: '0' }, '1', false, '0'],
    ['tensorrt', {}, undefined, false, '0'],
    ['tensorrt', { use_tf32: '1' }, undefined, true, undefined],
    // An engine for others must load without the variable.
    ['tensorrt', { trt_dump_ep_context_model: '1' }, undefined, true, undefined],
    ['tensorrt', { 'ep.context_enable': '1' }, undefined, true, undefined],
    ['tensorrt', { 'ep.context_enable': '1', use_tf32: '0' }, undefined, false, '0'],
    ['tensorrt', { trt_dump_ep_context_model: '1' }, '0', false, '0'],
  ] as const)(
    '%s %j with NVIDIA_TF32_OVERRIDE %s: TF32 %s',
    (provider, providerOptions, variable, tf32, passed) => {
      const environment = variable === undefined ? {} : { NVIDIA_TF32_OVERRIDE: variable };
      const resolved = resolveProvider({ provider, providerOptions }, environment);
      expect(resolved.tf32).toBe(tf32);
      expect(resolved.environment.NVIDIA_TF32_OVERRIDE).toBe(passed);
      // TensorRT has no option for it.
      const own = resolved.providers.flatMap(({ options }) => options.filter(([key]) => key === 'use_tf32'));
      expect(own).toEqual(provider === 'cuda' ? [['use_tf32', tf32 ? '1' : '0']] : []);
    },
  );

  it('of several providers are divided among them', () => {
    const all = {
      use_tf32: '1',
      trt_fp16_enable: '1',
      gpu_mem_limit: '9',
      typo: '1',
      'ep.context_enable': '1',
    };
    expect(
      ['cpu', 'cuda', 'tensorrt'].map((name) => Object.keys(optionsFor(name as OrtProvider, all))),
    ).toEqual([
      ['typo', 'ep.context_enable'],
      ['use_tf32', 'gpu_mem_limit', 'typo', 'ep.context_enable'],
      ['use_tf32', 'trt_fp16_enable', 'typo', 'ep.context_enable'],
    ]);
  });

  it('telemetry is off unless its variable is set', () => {
    expect(resolveProvider({}, {}).environment.ORT_DISABLE_TELEMETRY).toBe('1');
    expect(resolveProvider({}, { ORT_DISABLE_TELEMETRY: '0' }).environment.ORT_DISABLE_TELEMETRY).toBe('0');
  });
});
