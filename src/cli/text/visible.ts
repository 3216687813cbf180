/** Text of clients for a terminal: what would steer it, or turn the line around, shows itself; and how wide the rest is. */

import { nameOfUnseen, UNSEEN } from '../../contract/unseen.js'

/** `text` on one line, with each unseen character as `<U+202E>`. */
export const visible = (text: string): string => text.replace(UNSEEN, (character) => `<${nameOfUnseen(character)}>`)

/**
 * Writes `text` and a line break to a terminal, its lines `visible`. Everything that the commands print goes through here,
 * except JSON lines (`harmlessJson`) and the frames of `top`, whose lines are `visible` before they are coloured.
 */
export function print(out: { write(text: string): unknown }, text: string): void {
  out.write(`${text.split('\n').map(visible).join('\n')}\n`)
}

/** JSON that is as harmless on a terminal, and reads the same. */
export const harmlessJson = (value: unknown): string =>
  JSON.stringify(value).replace(UNSEEN, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  )

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

// Two columns each: Hangul, CJK and its marks, kana, full-width forms, and what is drawn as a picture.
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|.\ufe0f)/u
const ASCII = /^[\x20-\x7e]*$/

const widthOfOne = (grapheme: string) => (WIDE.test(grapheme) ? 2 : 1)

/** How many columns of a terminal `text` takes, which has no unseen characters. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += widthOfOne(segment)
  return width
}

/** `text` in exactly `width` columns: filled up, or cut with an ellipsis. */
export function padTo(text: string, width: number, atEnd = false): string {
  const own = widthOf(text)
  if (own <= width) return atEnd ? ' '.repeat(width - own) + text : text + ' '.repeat(width - own)
  let cut = ''
  let used = 0
  for (const { segment } of segmenter.segment(text)) {
    const next = widthOfOne(segment)
    if (used + next > width - 1) break
    cut += segment
    used += next
  }
  return `${cut}…${' '.repeat(Math.max(0, width - used - 1))}`.slice(0, width === 0 ? 0 : undefined)
}
