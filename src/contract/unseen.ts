/** Characters of a text that a reader would not see, or that would turn the rest of the line around. Serves whoever shows what clients wrote. */

/** Controls, format characters (bidi among them), separators of lines, private and unpaired ones. */
export const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu

/** `U+202E` */
export const nameOfUnseen = (character: string): string =>
  `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
