export function isPostgres(database: string): boolean {
  return /^postgres(ql)?:/.test(database)
}

/** A PostgreSQL address without the password that it may hold. */
export function whereIs(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host} database "${pathname.slice(1)}"`
}
