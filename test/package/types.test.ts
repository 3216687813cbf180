/** The types as one strict consumer's compiler reads them; `tools/type-matrix.mjs` goes through all of them in CI. */
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withHoverTexts } from '../../tools/hover.mjs'
import { createConsumer, ROOT, runIn } from './consumer.js'

const TSC = join(ROOT, 'node_modules/.bin/tsc')

it('the types resolve and compile without those of Node, and no library check is skipped', async () => {
  const consumer = await createConsumer()
  onTestFinished(() => consumer.remove())
  await cp(join(ROOT, 'tools/type-matrix/programs/portable.ts'), join(consumer.dir, 'portable.ts'))
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
  }
  await writeFile(join(consumer.dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['portable.ts'] }))
  expect(await runIn(consumer, process.execPath, [TSC]).catch(({ stdout }: { stdout: string }) => stdout)).toBe('')
})

describe('the fields of a schema in the declarations', () => {
  let root: string
  const source = `import * as z from 'zod'
export const First = z.object({ own: z.string(), told: z.string().describe('Told.'), inner: z.object({ deep: z.any() }) })
export const Second = z.object({ copied: First.shape.own })
export const Public = z.object({ ...First.shape, ...Second.shape })
`
  const first =
    '{\n/** Own. @default 1 */ own: z.ZodString; told: z.ZodString; inner: z.ZodObject<{\n/** Deep. */ deep: z.ZodAny }> }'
  const copied = 'own: z.ZodString; told: z.ZodString; inner: z.ZodObject<{ deep: z.ZodAny }>; copied: z.ZodString'
  const declare = (second: string) => `export declare const First: z.ZodObject<${first}>;
export declare const Second: z.ZodObject<{
${second}copied: z.ZodString }>;
export declare const Public: z.ZodObject<{ ${copied} }>;
`
  async function describedBy(second: string) {
    return (await withHoverTexts(root, new Map([['schemas.d.ts', declare(second)]]))).get('schemas.d.ts')
  }

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'relayscope-hover-'))
    for (const folder of ['src', 'dist']) await mkdir(join(root, folder))
    await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
    await writeFile(join(root, 'src/schemas.ts'), source)
  })
  afterAll(() => rm(root, { recursive: true }))

  it('get their description, or else the comment of the field that they were copied from', async () => {
    const described = copied
      .replace(/own|copied/g, '/** Own. @default 1 */\n$&')
      .replace('told', '/** Told. */\ntold')
      .replace('deep', '/** Deep. */\ndeep')
    const expected = declare('/** Own. @default 1 */\n')
      .replace(first, first.replace('told', '/** Told. */\ntold'))
      .replace(copied, described)
    expect(await describedBy('')).toBe(expected)
  })
})
