/** How large a terminal is, for what is laid out in it. */

interface Sized {
  readonly columns?: number
  readonly rows?: number
}

/** One that nobody has told its size says 0. */
export const columnsOf = ({ columns }: Sized): number => columns || 80
export const rowsOf = ({ rows }: Sized): number => rows || 24
