/** Characters of a text that a reader would not see, or that would turn the rest of the line around. Serves whoever shows what clients wrote. */

/**
 * Controls, format characters (bidi among them), separators of lines, private and unpaired ones; what Unicode lets nobody draw,
 * variation selectors and fillers among it; and the empty Braille cell. One selector behind a pictograph is how people write it,
 * and spaces of other widths are seen to be spaces.
 */
export const UNSEEN = /(?!(?<=\p{ExtPict})\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{DI}\u2800]/gu

/** `U+202E` */
export const nameOfUnseen = (character: string): string =>
  `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
