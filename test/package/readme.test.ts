/** The README's first program, cut from the page: what a newcomer pastes runs and is typed as it stands. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../adapters/process.js'
import { type Consumer, createConsumer, ROOT, runIn } from './consumer.js'

const TSC = join(ROOT, 'node_modules/.bin/tsc')
const MOST_LINES = 15

describe('the first program of the README', () => {
  let consumer: Consumer
  let program: string
  beforeAll(async () => {
    consumer = await createConsumer(['@types/node', 'undici-types'])
    const readme = await readFile(join(consumer.dir, 'node_modules/relayscope/README.md'), 'utf8')
    program = /```js\n([\s\S]*?)```/.exec(readme)?.[1] as string
    await writeFile(join(consumer.dir, 'look.mjs'), program)
    await writeFile(join(consumer.dir, 'look.ts'), program)
  })
  afterAll(() => consumer?.remove())

  it('has fifteen lines', () => {
    expect(program.split('\n').filter((line) => line.trim() !== '')).toHaveLength(MOST_LINES)
  })

  it('shows its client at the address that it prints', async () => {
    const running = await run(process.execPath, [join(consumer.dir, 'look.mjs')], {
      cwd: consumer.dir,
      env: { PORT: '0', SERVICE_ADMIN_KEY: '' },
    })
    try {
      const answer = await fetch(`http://127.0.0.1:${running.port}/ops/diagnostics/users`)
      expect(await answer.json()).toMatchObject({ items: [{ user_id: 'ada', observed_connections: 1 }] })
    } finally {
      await running.close()
    }
  })

  it('is typed as it stands', async () => {
    // The declarations themselves are checked with the types of the package.
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2023',
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    }
    await writeFile(join(consumer.dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['look.ts'] }))
    const compiled = runIn(consumer, process.execPath, [TSC, '-p', 'tsconfig.json'])
    expect(await compiled.catch((error: { stdout: string }) => error.stdout)).toBe('')
  })
})
