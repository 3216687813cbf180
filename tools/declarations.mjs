/**
 * Removes declarations that no public module refers to. TypeScript declares everything that any module exports, and half
 * of that is internal. Works on the text of each file, so the comments and names of what remains don't change.
 */
import { posix } from 'node:path'
import ts from 'typescript'

/** Calls `visit` with each identifier in `node`, and `visitImport` with each `import('…').Name`. */
function walk(node, visit, visitImport) {
  if (ts.isImportTypeNode(node)) visitImport(node.argument.literal.text, node.qualifier)
  if (ts.isIdentifier(node)) visit(node.text)
  ts.forEachChild(node, (child) => walk(child, visit, visitImport))
}

/** The file that `specifier` names in a module of `file`; `undefined` for a package. */
const fileOf = (file, specifier) =>
  specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier.replace(/\.js$/, '.d.ts')) : undefined

/** Reads a file: its statements, those that declare each name, and where each imported or exported name comes from. */
function readFile(file, text) {
  const { statements } = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const declared = new Map()
  const origins = new Map()
  const stars = []
  for (const statement of statements) {
    const names = ts.isVariableStatement(statement)
      ? statement.declarationList.declarations.map(({ name }) => name.text)
      : statement.name
        ? [statement.name.text]
        : []
    for (const name of names) declared.set(name, [...(declared.get(name) ?? []), statement])
    const bindings = statement.importClause?.namedBindings ?? statement.exportClause
    const from = statement.moduleSpecifier && fileOf(file, statement.moduleSpecifier.text)
    if (from === undefined) continue
    if (ts.isExportDeclaration(statement) && !bindings) stars.push({ from, statement })
    else if (!bindings?.elements) throw new Error(`${file}: imports of a whole module are not supported`)
    for (const { name, propertyName = name } of bindings?.elements ?? [])
      origins.set(name.text, [...(origins.get(name.text) ?? []), { from, exported: propertyName.text, statement }])
  }
  return { statements, declared, origins, stars, kept: new Set() }
}

/** Text of an import with the names that are used, or `''`. An import for its effects is kept. */
function shortenImport(statement, used) {
  const { importClause, moduleSpecifier } = statement
  if (!importClause) return statement.getFullText()
  const { name, namedBindings } = importClause
  const type = importClause.phaseModifier === ts.SyntaxKind.TypeKeyword ? 'type ' : ''
  const names = []
  if (name && used.has(name.text)) names.push(name.text)
  if (namedBindings && ts.isNamespaceImport(namedBindings)) {
    if (used.has(namedBindings.name.text)) names.push(`* as ${namedBindings.name.text}`)
  } else if (namedBindings) {
    const kept = namedBindings.elements.filter((element) => used.has(element.name.text))
    if (kept.length > 0) names.push(`{ ${kept.map((element) => element.getText()).join(', ')} }`)
  }
  return names.length === 0 ? '' : `import ${type}${names.join(', ')} from ${moduleSpecifier.getText()};\n`
}

/** The text that remains of a file. `export {}` says that it is a module. */
function textOf({ statements, kept }) {
  const used = new Set()
  for (const statement of kept)
    walk(
      statement,
      (name) => used.add(name),
      () => {},
    )
  const parts = statements.map((statement) => {
    if (kept.has(statement)) return statement.getFullText()
    if (ts.isImportDeclaration(statement)) return shortenImport(statement, used)
    const isMark = ts.isExportDeclaration(statement) && statement.exportClause?.elements.length === 0
    return isMark ? statement.getFullText() : ''
  })
  return `${parts.join('').trim()}\n`
}

/**
 * Returns the texts that remain, by file. `texts` are all declarations by file, `entries` the files whose exports are public.
 */
export function publicDeclarations(texts, entries) {
  const followed = new Map()
  const files = new Map([...texts].map(([file, text]) => [file, readFile(file, text)]))

  function keepStatement(file, statement) {
    const { kept } = files.get(file)
    if (kept.has(statement)) return
    kept.add(statement)
    walk(
      statement,
      (name) => keepName(file, name),
      (specifier, qualifier) => {
        const from = fileOf(file, specifier)
        if (from && !qualifier) throw new Error(`${file}: import('${specifier}') of a whole module is not supported`)
        if (from) keepName(from, ts.isIdentifier(qualifier) ? qualifier.text : qualifier.left.text)
      },
    )
  }

  /**
   * Keeps what `name` means in `file`; names of packages and of the language mean nothing there.
   *
   * @returns whether it means something.
   */
  function keepName(file, name) {
    const read = files.get(file)
    if (!read) return false
    const declared = read.declared.get(name) ?? []
    for (const statement of declared) keepStatement(file, statement)
    const key = `${file} ${name}`
    if (declared.length > 0 || followed.has(key)) return declared.length > 0 || followed.get(key)
    followed.set(key, false)
    for (const { from, exported, statement } of read.origins.get(name) ?? []) {
      if (ts.isExportDeclaration(statement)) keepStatement(file, statement)
      if (keepName(from, exported)) followed.set(key, true)
    }
    for (const { from, statement } of read.stars)
      if (keepName(from, name)) {
        read.kept.add(statement)
        followed.set(key, true)
      }
    return followed.get(key)
  }

  function keepAll(file) {
    const { statements, stars } = files.get(file)
    for (const statement of statements) if (!ts.isImportDeclaration(statement)) keepStatement(file, statement)
    for (const { from } of stars) keepAll(from)
  }

  for (const entry of entries) keepAll(entry)
  const remaining = [...files].filter(([, { kept }]) => kept.size > 0)
  return new Map(remaining.map(([file, read]) => [file, textOf(read)]))
}

/** The names that `entries` export. `texts` are declarations by file. */
export function publicNames(texts, entries) {
  const names = new Set()
  const add = (file) => {
    const { declared, origins, stars } = readFile(file, texts.get(file))
    for (const name of [...declared.keys(), ...origins.keys()]) names.add(name)
    for (const { from } of stars) add(from)
  }
  for (const entry of entries) add(entry)
  return names
}
