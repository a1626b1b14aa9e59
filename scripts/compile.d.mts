export function compile(name: 'dist' | 'examples'): boolean;
