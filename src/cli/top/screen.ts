/** The terminal while `top` has it: another screen, one write per frame, and as it was before on every way out. */

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[2J'
const LEAVE = '\x1b[?25h\x1b[?1049l'
// A terminal that knows it shows a frame as a whole.
const [BEGIN, END] = ['\x1b[?2026h', '\x1b[?2026l']

export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export interface Screen {
  draw(lines: readonly string[]): void
  /** Gives the terminal back; the second time nothing. */
  leave(): void
}

export function openScreen(terminal: Terminal): Screen {
  let isOpen = true
  let drawn = ''
  terminal.write(ENTER)
  return {
    draw(lines) {
      // No line break behind the last: it would scroll.
      const frame = `${BEGIN}\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J${END}`
      if (!isOpen || frame === drawn) return
      drawn = frame
      terminal.write(frame)
    },
    leave() {
      if (!isOpen) return
      isOpen = false
      terminal.write(LEAVE)
    },
  }
}
