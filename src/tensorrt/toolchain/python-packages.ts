import { readdirSync } from 'node:fs';
import { type Surroundings, sitePackages } from './places.js';

/** A TensorRT package in a Python's package folder: `tensorrt_cu12_bindings`, 10.6.0. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/** TensorRT as the Pythons on this machine see it, from the records of their installed packages. No Python is started. */
export function pythonPackages(surroundings: Surroundings): readonly PythonPackage[] {
  return sitePackages(surroundings).flatMap((folder) =>
    listed(folder).flatMap((record) => {
      const match = /^(tensorrt(?:_[a-z0-9]+)*)-(\d[\w.]*?)(?:\.post\d+)?\.dist-info$/i.exec(record);
      return match?.[1] === undefined || match[2] === undefined
        ? []
        : [{ name: match[1].toLowerCase(), version: match[2], folder }];
    }),
  );
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
