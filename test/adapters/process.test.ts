/** A server that does not come up must fail the tests that need it, and say why. */
import { describe, expect, it } from 'vitest'
import { run } from './process.js'

describe('a server process', () => {
  it('is refused when its command is not there', async () => {
    await expect(run('/nowhere/runtime', [])).rejects.toThrow(/ENOENT/)
  })

  it('is refused with what it said when it ends before it serves', async () => {
    await expect(run(process.execPath, ['-e', 'console.error("no port"); process.exit(3)'])).rejects.toThrow(/no port/)
  })

  it('is refused when it ends without a word', async () => {
    await expect(run(process.execPath, ['-e', ''])).rejects.toThrow(/ended/)
  })
})
