import type { Key, ReactNode } from 'react'

export interface Column<T> {
  title: string
  show(row: T): ReactNode
  /** Buttons: what they do is on them, so no heading stands above. */
  actions?: boolean
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  rows: T[]
  keyOf(row: T): Key
}

/** Rows and columns; on a phone each row is a block in which every value has its heading beside it. */
export function Table<T>({ label, columns, rows, keyOf }: Props<T>) {
  return (
    <div className="table-scroll">
      <table className="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ title, actions }) => (
              <th key={title} scope="col">
                {actions ? <span className="visually-hidden">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, show, actions }) => (
                <td key={title} data-label={actions ? undefined : title} className={actions ? 'table-actions' : undefined}>
                  {show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
