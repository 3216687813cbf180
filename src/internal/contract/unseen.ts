/** Characters that a reader cannot see, or that reverse the rest of a line, for displaying client-supplied text. */

/**
 * Controls, format characters including bidi, line separators, private-use and unpaired characters; characters that
 * have no glyph, variation selectors and fillers among them; and the empty Braille cell. A selector after a pictograph
 * is allowed, and spaces of other widths are visible as spaces.
 */
export const UNSEEN = /(?!(?<=\p{ExtPict})\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{DI}\u2800]/gu

/** `U+202E` */
export const nameOfUnseen = (character: string): string =>
  `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
