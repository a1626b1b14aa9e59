import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonIsland, markup } from '../../src/report/markup/markup.js';

const escaped = (text: string) => markup`${text}`.toString();

describe('markup', () => {
  test('escapes what is interpolated, in content and in attributes', () => {
    const hostile = `"><script>alert('x')</script>&`;
    expect(markup`<a title="${hostile}">${hostile}</a>`.toString()).toBe(
      '<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;</a>',
    );
  });

  test('takes markup as it is, lists in order, and nothing for null, undefined and false', () => {
    const items = [markup`<li>${1}</li>`, null, undefined, false as const, markup`<li>${'<'}</li>`];
    expect(markup`<ul>${items}</ul>`.toString()).toBe('<ul><li>1</li><li>&lt;</li></ul>');
  });

  test('shows characters that hide or reorder text as code points', () => {
    expect(escaped('a\u202eb\u0000c\u200bd\ud800')).toBe('a\\u{202e}b\\u{0}c\\u{200b}d\\u{d800}');
    expect(escaped('tab\tand\nline, 卷积 é 🙂')).toBe('tab\tand\nline, 卷积 é 🙂');
  });

  test('never lets any text open a tag or leave an attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escaped(text)).not.toMatch(/[<>"']/);
      }),
    );
  });

  test('JSON inside a script element cannot end it and reads back as it was', () => {
    const value = { name: '</script><!--<script>', line: '\u2028' };
    const island = jsonIsland(value).toString();
    expect(island).not.toContain('<');
    expect(JSON.parse(island)).toEqual(value);
  });
});
