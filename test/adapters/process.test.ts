/** A server that does not come up must fail the tests that need it, and say why. */
import { describe, expect, it } from 'vitest'
import { run } from './process.js'

describe('a server process', () => {
  it('rejects when its command does not exist', async () => {
    await expect(run('/nowhere/runtime', [])).rejects.toThrow(/ENOENT/)
  })

  it('rejects with its output when it exits before it serves', async () => {
    await expect(run(process.execPath, ['-e', 'console.error("no port"); process.exit(3)'])).rejects.toThrow(/no port/)
  })

  it('rejects when it exits without output', async () => {
    await expect(run(process.execPath, ['-e', ''])).rejects.toThrow(/ended/)
  })
})
