import { describe, expect, test } from 'vitest';
import { shellLine, textWithoutSecrets } from '../../../src/base/text/shell-line.js';

const hidden: readonly (readonly [string, string])[] = [
  ['http://user:secret@host:9000/bucket', 'http://***@host:9000/bucket'],
  ['--remote=https://AKIA:se/cr?et@host/engines', '--remote=https://***@host/engines'],
  ['s3://bucket/models?key=secret&token=secret', 's3://bucket/models?key=***&token=***'],
  ['https://host/model.onnx?X-Amz-Signature=secret#part', 'https://host/model.onnx?X-Amz-Signature=***#part'],
];

const shown: readonly string[] = [
  'input=@cat.npy',
  'tensorrt-rtx:sm_89',
  's3://bucket/engines',
  'a?b=c',
  'x@y',
  'file:///app/node_modules/@aws-sdk/client-s3/index.js:1:2',
];

describe('secrets of addresses', () => {
  test.each(hidden)('%s is shown without them, as an argument and in a text', (word, without) => {
    const quoted = without.includes('*') || without.includes('?') ? `'${without}'` : without;
    expect(shellLine(['trtforge', word])).toBe(`trtforge ${quoted}`);
    for (const text of [`(see "%s").`, `a: %s\nb: x@y`, `<link>%s</link>`, `it's '%s'`])
      expect(textWithoutSecrets(text.replace('%s', word))).toBe(text.replace('%s', without));
  });

  test.each(shown)('%s has none', (word) => {
    expect(shellLine([word]).replaceAll("'", '')).toBe(word);
    expect(textWithoutSecrets(`at ${word} of me@host`)).toBe(`at ${word} of me@host`);
  });

  test('an argument may have spaces in them', () => {
    expect(shellLine(['http://a:b c@host'])).toBe("'http://***@host'");
  });

  test('JSON stays JSON, also inside a string of JSON', () => {
    const value = { cause: JSON.stringify({ address: 'http://a:b\\c@host/x?key=secret', after: 'x' }) };
    const text = textWithoutSecrets(JSON.stringify(value));
    expect(text).not.toMatch(/secret|b\\/);
    expect(JSON.parse(JSON.parse(text).cause).after).toBe('x');
  });

  test('a long part of a text takes no time', () => {
    for (const part of ['http://', 'http://a?', 'a=b&', '?', 'x@'])
      expect(textWithoutSecrets(`http://${part.repeat(200_000)}`)).toMatch(/^http:/);
  });
});
