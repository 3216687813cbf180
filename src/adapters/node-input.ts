/** Hands what a connection sends to Node's parser a little at a time. Serves `node-bounds.ts`. */
import type { Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'
// Of the shortest heads that there are fourteen at once, and no more calls of the parser for what only looks like heads.
const LEAST_BYTES = 256
// Nearly every request is read in one turn; and seven hundred chunks of one byte are not too much for one.
const TURN_BYTES = 8_192

interface Input {
  socket: Socket
  /** From when on what still comes is thrown away, a piece in a turn. */
  isFull: () => boolean
  takeTurn: (act: () => void) => void
}

/**
 * From now on what `socket`, which a Node server has just accepted, sends is parsed a head at a time and a few KiB in a
 * turn: a parser cannot be stopped within what it is handed, and a socket hands over 64 KiB, a thousand requests and more.
 */
export function sliceInput({ socket, isFull, takeTurn }: Input): void {
  // Node's own. While anybody else listens, it reads the socket by its events and in no other way.
  const parse = socket.listeners('data')[0] as ((chunk: Buffer) => void) | undefined
  if (parse === undefined) return
  socket.off('data', parse)

  // Node pauses and resumes the socket for reasons of its own, and is not to resume it before its turn.
  const { pause, resume } = socket
  let isWanted = true
  let isHeld = false
  socket.pause = () => {
    isWanted = false
    return pause.call(socket)
  }
  socket.resume = () => {
    isWanted = true
    return isHeld ? socket : resume.call(socket)
  }

  /** @returns how many bytes of `chunk` are done with. */
  const parseTurn = (chunk: Buffer): number => {
    let at = 0
    while (at < Math.min(chunk.length, TURN_BYTES) && isWanted && !isFull() && !socket.destroyed) {
      const head = chunk.indexOf(HEAD_END, at + LEAST_BYTES - HEAD_END.length)
      const end = Math.min(head < 0 ? chunk.length : head + HEAD_END.length, at + TURN_BYTES)
      parse(chunk.subarray(at, end))
      at = end
    }
    return at
  }

  socket.on('data', (chunk: Buffer) => {
    const rest = chunk.subarray(parseTurn(chunk))
    if (socket.destroyed || (rest.length === 0 && !isFull())) return
    isHeld = true
    pause.call(socket)
    if (!isFull()) socket.unshift(rest)
    takeTurn(() => {
      isHeld = false
      if (isWanted && !socket.destroyed) resume.call(socket)
    })
  })
}
