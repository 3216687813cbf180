/**
 * Puts the descriptions of schemas into the declarations, so that an editor shows them for the fields of inputs, options
 * and records. A field that has a comment in its declaration keeps it; otherwise it gets the `.describe()` of its schema,
 * or else the comment of the field that it was copied from.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import ts from 'typescript'
import { esbuildLua } from './lua.mjs'

const SCHEMA = /\bZodObject</

const sourceOf = (file) => file.replace(/\.d\.ts$/, '.ts')

/** Loads the source files, with one copy of each schema. */
async function loadSources(root, files) {
  // Inside the package, so that the modules find its dependencies.
  const outdir = mkdtempSync(join(root, 'dist/.hover-'))
  try {
    await build({
      absWorkingDir: root,
      entryPoints: files.map((file) => ({ in: join(root, 'src', file), out: file })),
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      outdir,
      plugins: [esbuildLua],
      define: { RELAYSCOPE_VERSION: '""', RELAYSCOPE_DASHBOARD_SCRIPT: '""', RELAYSCOPE_DASHBOARD_STYLE: '""' },
      logLevel: 'error',
    })
    const loaded = new Map()
    for (const file of files) loaded.set(file, await import(pathToFileURL(join(outdir, `${file}.js`)).href))
    return loaded
  } finally {
    rmSync(outdir, { recursive: true, force: true })
  }
}

/** The object schema in optional, nullable, list and other schemas of one value, and its description. */
function unwrap(schema) {
  let description
  for (let one = schema; one?._zod; one = one._zod.def.innerType ?? one._zod.def.element ?? one._zod.def.in) {
    description ??= one.description
    if (one._zod.def.type === 'object') return { description, shape: one._zod.def.shape }
  }
  return { description, shape: undefined }
}

/** The type literals in `ZodObject<{…}>`, also inside other types. */
function literalsIn(node) {
  if (!node) return []
  if (ts.isTypeLiteralNode(node)) return [node]
  if (ts.isIntersectionTypeNode(node)) return node.types.flatMap(literalsIn)
  for (const each of node.typeArguments ?? []) {
    const found = literalsIn(each)
    if (found.length > 0) return found
  }
  return []
}

/** Text of the comment of a member, with its tags, as its declaration has it; `undefined` without one. */
function commentOf(member) {
  const comment = ts.getJSDocCommentsAndTags(member).at(-1)
  const parts = [comment, ...(comment?.tags ?? [])].map((part) => {
    const tag = part?.tagName ? `@${part.tagName.text} ` : ''
    return tag + (ts.getTextOfJSDocComment(part?.comment) ?? '')
  })
  return parts.join(' ').trim() || undefined
}

/** Calls `visit` with each field of the schemas that `text`, the declarations in `file`, declares. */
function eachField(file, text, loaded, visit) {
  const visitLiteral = (literal, schema) => {
    const { shape } = unwrap(schema)
    for (const member of literal.members) {
      if (!ts.isPropertySignature(member)) continue
      const field = shape?.[member.name.text]
      visit(member, field)
      for (const inner of literalsIn(member.type)) visitLiteral(inner, field)
    }
  }
  for (const statement of ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true).statements) {
    if (!ts.isVariableStatement(statement)) continue
    for (const { name, type } of statement.declarationList.declarations) {
      const schema = loaded.get(sourceOf(file))[name.text]
      if (!schema?._zod) continue
      for (const literal of literalsIn(type)) visitLiteral(literal, schema)
    }
  }
}

/** Returns `declarations`, texts by file, with a comment for each field of a schema. `root` has their sources in `src`. */
export async function withHoverTexts(root, declarations) {
  const sources = new Map([...declarations].filter(([, text]) => SCHEMA.test(text)))
  const loaded = await loadSources(root, [...sources.keys()].map(sourceOf))
  const comments = new Map()
  for (const [file, text] of sources)
    eachField(file, text, loaded, (member, field) => {
      const comment = commentOf(member)
      if (field && comment) comments.set(field, new Set(comments.get(field)).add(comment))
    })

  /** The comment of a field that another schema declares; `undefined` where other schemas differ in theirs. */
  const sharedComment = (field) => (comments.get(field)?.size === 1 ? [...comments.get(field)][0] : undefined)

  const described = new Map(declarations)
  for (const [file, text] of sources) {
    const insertions = []
    eachField(file, text, loaded, (member, field) => {
      if (commentOf(member)) return
      const comment = unwrap(field).description ?? sharedComment(field)
      if (comment) insertions.push([member.getStart(), `/** ${comment.replaceAll('*/', '* /')} */\n`])
    })
    let result = text
    for (const [at, comment] of insertions.sort(([a], [b]) => b - a))
      result = result.slice(0, at) + comment + result.slice(at)
    described.set(file, result)
  }
  return described
}

/** Puts the comments into the declarations below `dist`. */
export async function addHoverTexts(root, dist) {
  const files = readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.d.ts'))
  const declarations = new Map(files.map((file) => [file, readFileSync(join(dist, file), 'utf8')]))
  for (const [file, text] of await withHoverTexts(root, declarations)) writeFileSync(join(dist, file), text)
}
