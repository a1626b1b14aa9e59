import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { StreamsPaths, sedName, streamsNames, timestamp } from '../../../src/products/deepstream/names.js';

/** What the scripts of DeepStream's skill do, in a real shell. */
const theirs = (path: string): { readonly name: string; readonly file: string } => ({
  name: shell(`echo "$1" | sed 's|models/\\([^/]*\\)/.*|\\1|'`, path),
  file: shell('basename "$1" .onnx', path),
});
const shell = (script: string, path: string): string =>
  execFileSync('sh', ['-c', script, 'sh', path], { encoding: 'utf8' }).trimEnd();

describe('names of paths that the scripts were made for', () => {
  test.each([
    'models/yolo26n/model/yolo26n.onnx',
    'models/rt-detr_v2/model/model.fp16.onnx',
    'models/a/b.onnx',
  ])('%s: as the shell splits it', (path) => {
    const { modelName, modelFile, root, notes } = streamsNames(path, {}, '/srv');
    expect({ name: modelName, file: modelFile }).toEqual(theirs(path));
    expect({ root, notes }).toEqual({ root: '/srv', notes: [] });
  });
});

describe('names of other paths are corrected, and that is reported', () => {
  test.each<[string, string, string, string]>([
    ['/data/models/yolo/model/yolo.onnx', 'yolo', 'yolo', '/data'],
    ['./models/yolo/model/yolo.onnx', 'yolo', 'yolo', '/home/me'],
    ['../models/yolo/model/yolo.onnx', 'yolo', 'yolo', '/home'],
    ['/opt/models/detectors/models/yolo/model/v2.onnx', 'yolo', 'v2', '/opt/models/detectors'],
    ['/opt/models/yolo/model/models/x.onnx', 'yolo', 'x', '/opt'],
    ['/opt/mymodels/yolo/x.onnx', 'x', 'x', '/home/me'],
    ['resnet50.onnx', 'resnet50', 'resnet50', '/home/me'],
    ['/models/x.onnx', 'x', 'x', '/home/me'],
    ['/models/yolo/x.onnx', 'yolo', 'x', '/'],
  ])('%s', (path, modelName, modelFile, root) => {
    const names = streamsNames(path, {}, '/home/me');
    expect(names).toMatchObject({ modelName, modelFile, root });
    expect(theirs(path).name).toBe(sedName(path));
    expect(names.notes.join()).toContain(`"${theirs(path).name}"`);
  });

  test('an ending in capitals', () => {
    const { modelFile, notes } = streamsNames('models/a/model/NET.ONNX', {}, '/srv');
    expect(modelFile).toBe('NET');
    expect(theirs('models/a/model/NET.ONNX').file).toBe('NET.ONNX');
    expect(notes).toHaveLength(1);
  });

  test('what the user passes counts, and needs no note', () => {
    const names = streamsNames('/x/net.onnx', { name: 'mine', root: 'out' }, '/srv');
    expect(names).toEqual({ modelName: 'mine', modelFile: 'net', root: '/srv/out', notes: [] });
  });
});

describe('files of the layout', () => {
  const paths = new StreamsPaths(streamsNames('models/yolo/model/yolo26n.onnx', {}, '/srv'));

  test.each<[string, string]>([
    [paths.engine(64), '/srv/models/yolo/benchmarks/engines/yolo26n_dynamic_b64.engine'],
    [paths.shownEngine(128), 'models/yolo/benchmarks/engines/yolo26n_dynamic_b128.engine'],
    [paths.timingCache, '/srv/models/yolo/benchmarks/engines/timing.cache'],
    [paths.log(1), '/srv/models/yolo/benchmarks/b1/trtexec_b1.log'],
    [paths.log(64), '/srv/models/yolo/benchmarks/b64/trtexec_b64.log'],
    [paths.data, '/srv/models/yolo/reports/benchmark_data.json'],
    [
      paths.buildLog(64, true, new Date(2026, 10, 21, 4, 5, 6)),
      '/srv/models/yolo/benchmarks/engines/yolo26n_dynamic_build_20261121_040506.log',
    ],
    [
      paths.buildLog(128, false, new Date(2026, 10, 21, 4, 5, 6)),
      '/srv/models/yolo/benchmarks/engines/yolo26n_dynamic_build_b128_20261121_040506.log',
    ],
  ])('%s', (path, expected) => {
    expect(path).toBe(expected);
  });

  test('a time as date +%Y%m%d_%H%M%S prints it', () => {
    const at = new Date(2026, 0, 2, 3, 4, 5);
    const printed = execFileSync('date', ['-d', `@${at.getTime() / 1000}`, '+%Y%m%d_%H%M%S'], {
      encoding: 'utf8',
    });
    expect(timestamp(at)).toBe(printed.trim());
  });
});
