! A Fortran program that checks its results in every superstep, with "use mpi" or, by the preprocessor, mpif.h (WITH_MPIF) or
! "use mpi_f08" (WITH_F08). It ends when some rank gets SIGUSR1.
module parts
#ifdef WITH_F08
  use mpi_f08
#elif !defined(WITH_MPIF)
  use mpi
#endif
  implicit none
#ifdef WITH_MPIF
  include 'mpif.h'
#endif
#ifdef WITH_F08
#define COMM type(MPI_Comm)
#define DTYPE type(MPI_Datatype)
#define REQ type(MPI_Request)
#define OPER type(MPI_Op)
#define ERRH type(MPI_Errhandler)
#define WINDOW type(MPI_Win)
#define FILE_ type(MPI_File)
#define MESSAGE type(MPI_Message)
#define NUMBER(handle) handle%MPI_VAL
#define STATUS1 type(MPI_Status)
#define STATUS2(n) type(MPI_Status), dimension(n)
#else
#define COMM integer
#define DTYPE integer
#define REQ integer
#define OPER integer
#define ERRH integer
#define WINDOW integer
#define FILE_ integer
#define MESSAGE integer
#define NUMBER(handle) handle
#define STATUS1 integer, dimension(MPI_STATUS_SIZE)
#define STATUS2(n) integer, dimension(MPI_STATUS_SIZE, n)
#endif
  logical, save :: enough = .false.
  integer, save :: handled = 0, window_handled = 0, file_handled = 0
  integer, save :: rank = -1, nranks
contains
  subroutine on_enough()
    enough = .true.
  end subroutine
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    write (0, *) 'rank', rank, 'wrong: ', what
    print '(a,a)', 'wrong ', what
    call exit(3)
  end subroutine
#ifdef WITH_F08
  subroutine add_twice(in, inout, n, dtype)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: in, inout
    integer :: n
    type(MPI_Datatype) :: dtype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [n])
    call c_f_pointer(inout, b, [n])
    b = b + 2 * a
  end subroutine
#else
  subroutine add_twice(a, b, n, dtype)
    integer :: n, dtype
    integer :: a(n), b(n)
    b = b + 2 * a
  end subroutine
#endif
  subroutine on_error(c, code)
    COMM :: c
    integer :: code
    handled = code
  end subroutine
  subroutine on_window_error(w, code)
    WINDOW :: w
    integer :: code
    window_handled = NUMBER(w)
  end subroutine
  subroutine on_file_error(f, code)
    FILE_ :: f
    integer :: code
    file_handled = NUMBER(f)
  end subroutine
end module

program fortran_in_epochs
  use parts
  implicit none
  COMM :: dup
  DTYPE :: column, f90
  REQ :: requests(2), persistent(2)
  OPER :: twice
  ERRH :: handler
  WINDOW :: win
  FILE_ :: file
  MESSAGE :: matched
  integer, volatile :: crossing(2)
  integer(MPI_OFFSET_KIND) :: at, header = 16
  character(len=64) :: path
  STATUS1 :: status
  STATUS2(2) :: statuses
  integer :: ierr, left, right, s, n, any_enough, sum_of
  integer, volatile :: box(2)
  integer, parameter :: most = 16
  integer :: sent(most), expected(most), ones(most), offsets(most)
  integer, volatile :: received(most)
  DTYPE :: types(most)
  integer(MPI_ADDRESS_KIND) :: upper
  logical :: flag
  integer, volatile :: cells(4), put_value
  integer :: win_key
  integer(MPI_ADDRESS_KIND) :: nothing = 0, bytes = 16, stored = -77
  double precision :: field(4, 4), got(4)
  call signal(10, on_enough)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  left = mod(rank + nranks - 1, nranks)
  right = mod(rank + 1, nranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
  call MPI_Type_vector(4, 1, 4, MPI_DOUBLE_PRECISION, column, ierr)
  call MPI_Type_commit(column, ierr)
  call MPI_Type_create_f90_real(12, 100, f90, ierr)
  call MPI_Op_create(add_twice, .true., twice, ierr)
  call MPI_Comm_create_errhandler(on_error, handler, ierr)
  call MPI_Comm_set_errhandler(dup, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Send_init(box(1), 1, MPI_INTEGER, right, 5, dup, persistent(1), ierr)
  call MPI_Recv_init(box(2), 1, MPI_INTEGER, left, 5, dup, persistent(2), ierr)
  sent = [(100 * rank + n, n = 0, most - 1)]
  expected = [(100 * n + rank, n = 0, most - 1)]
  ones = 1
  offsets = [(4 * n, n = 0, most - 1)]
  types = MPI_INTEGER
  ! A fence epoch is open at every edge, with an access under way.
  call MPI_Win_create(cells, bytes, 4, MPI_INFO_NULL, dup, win, ierr)
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, win_key, nothing, ierr)
  call MPI_Win_set_attr(win, win_key, stored, ierr)
  call MPI_Win_create_errhandler(on_window_error, handler, ierr)
  call MPI_Win_set_errhandler(win, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Win_fence(MPI_MODE_NOPRECEDE, win, ierr)
  write (path, '(a,i0)') '/tmp/bsp-shim-fortran-', getpid()
  call MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file, ierr)
  call MPI_File_set_view(file, header, MPI_DOUBLE_PRECISION, column, 'native', MPI_INFO_NULL, ierr)
  call check(ierr == 0, 'a view')
  call MPI_File_create_errhandler(on_file_error, handler, ierr)
  call MPI_File_set_errhandler(file, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  s = 0
  do
    call MPI_Win_fence(0, win, ierr)
    call check(ierr == 0 .and. (s == 0 .or. cells(1) == left + s - 1), 'a fence')
    n = 0
    if (enough) n = 1
    call MPI_Allreduce(n, any_enough, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    if (any_enough > 0) exit
    field = rank + 0.5d0 * s
    field(2, :) = [rank, s, 7, 8]
    call MPI_Irecv(got, 4, MPI_DOUBLE_PRECISION, left, 1, dup, requests(1), ierr)
    call MPI_Isend(field(2, 1), 1, column, right, 1, dup, requests(2), ierr)
    call MPI_Waitall(2, requests, statuses, ierr)
    call check(ierr == 0 .and. all(got == [left, s, 7, 8]), 'a row')
    call MPI_Sendrecv(field(1, 1), 1, f90, right, 2, got, 1, f90, left, 2, MPI_COMM_WORLD, status, ierr)
    call check(got(1) == left + 0.5d0 * s, 'a parametrised type')
    sum_of = rank
    call MPI_Allreduce(MPI_IN_PLACE, sum_of, 1, MPI_INTEGER, MPI_SUM, dup, ierr)
    call check(sum_of == nranks * (nranks - 1) / 2, 'in place')
    n = 1
    call MPI_Reduce_local(n, sum_of, 1, MPI_INTEGER, twice, ierr)
    call check(sum_of == nranks * (nranks - 1) / 2 + 2, 'an operation')
    call MPI_Alltoallw(sent, ones, offsets, types, received, ones, offsets, types, dup, ierr)
    call check(ierr == 0 .and. all(received(1:nranks) == expected(1:nranks)), 'alltoallw')
    received(1:nranks) = sent(1:nranks)
    call MPI_Ialltoallw(MPI_IN_PLACE, ones, offsets, types, received, ones, offsets, types, dup, requests(1), ierr)
    call MPI_Wait(requests(1), status, ierr)
    call check(ierr == 0 .and. all(received(1:nranks) == expected(1:nranks)), 'ialltoallw in place')
    received = -1
    call MPI_Alltoallw_init(sent, ones, offsets, types, received, ones, offsets, types, dup, MPI_INFO_NULL, requests(1), ierr)
    call MPI_Start(requests(1), ierr)
    call MPI_Wait(requests(1), status, ierr)
    call MPI_Request_free(requests(1), ierr)
    call check(ierr == 0 .and. all(received(1:nranks) == expected(1:nranks)), 'alltoallw_init')
    handled = 0
    call MPI_Send(n, 1, MPI_INTEGER, nranks + 3, 0, dup, ierr)
    call check(ierr /= 0 .and. handled == ierr, 'an error handler')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, upper, flag, ierr)
    call check(flag .and. upper >= 32767, 'MPI_TAG_UB')
    window_handled = 0
    call MPI_Put(n, 1, MPI_INTEGER, nranks + 3, nothing, 1, MPI_INTEGER, win, ierr)
    call check(ierr /= 0 .and. window_handled == NUMBER(win), 'a window''s error handler')
    call MPI_Win_get_attr(win, win_key, upper, flag, ierr)
    call check(flag .and. upper == -77, 'an attribute of a window')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, upper, flag, ierr)
    call check(flag .and. upper == 16, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, upper, flag, ierr)
    call check(flag .and. upper == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_File_get_position(file, at, ierr)
    call check(ierr == 0 .and. at == 4 * s, 'a file''s pointer')
    call MPI_File_write(file, field(2, 1), 1, column, MPI_STATUS_IGNORE, ierr)
    at = 4 * (s / 2)
    call MPI_File_read_at(file, at, got, 4, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierr)
    call check(ierr == 0 .and. got(1) == rank .and. got(2) == s / 2, 'a file')
    call MPI_File_call_errhandler(file, MPI_ERR_OTHER, ierr)
    call check(file_handled == NUMBER(file), 'a file''s error handler')
    put_value = rank + s
    call MPI_Put(put_value, 1, MPI_INTEGER, right, nothing, 1, MPI_INTEGER, win, ierr)
    box = [rank + s, -1]
    call MPI_Startall(2, persistent, ierr)
    call MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE, ierr)
    call check(box(2) == left + s, 'persistent requests')
    call MPI_Recv(n, 1, MPI_INTEGER, MPI_PROC_NULL, 3, dup, MPI_STATUS_IGNORE, ierr)
    ! Two messages cross the edge: one that the program has matched, one that it hasn't.
    crossing = [rank + s, rank - s]
    call MPI_Issend(crossing(1), 1, MPI_INTEGER, right, 8, dup, requests(1), ierr)
    call MPI_Issend(crossing(2), 1, MPI_INTEGER, right, 8, dup, requests(2), ierr)
    call MPI_Mprobe(left, 8, dup, matched, status, ierr)
    call usleep_(1000)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Test(requests(2), flag, status, ierr)
    call check(.not. flag, 'a synchronous send before its receive')
    call MPI_Allreduce(MPI_IN_PLACE, sum_of, 1, MPI_INTEGER, MPI_SUM, dup, ierr)
    call MPI_Recv(n, 1, MPI_INTEGER, left, 8, dup, status, ierr)
    call check(ierr == 0 .and. n == left - s, 'a message that has crossed an edge')
    call MPI_Mrecv(n, 1, MPI_INTEGER, matched, status, ierr)
    call check(ierr == 0 .and. n == left + s .and. NUMBER(matched) == NUMBER(MPI_MESSAGE_NULL), 'a matched message')
    call MPI_Waitall(2, requests, statuses, ierr)
    s = s + 1
  end do
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  call MPI_Win_free(win, ierr)
  call check(ierr == 0 .and. NUMBER(win) == NUMBER(MPI_WIN_NULL), 'MPI_Win_free')
  call MPI_Win_free_keyval(win_key, ierr)
  call MPI_File_close(file, ierr)
  call check(ierr == 0 .and. NUMBER(file) == NUMBER(MPI_FILE_NULL), 'MPI_File_close')
  call MPI_Finalize(ierr)
  print '(a,i0)', 'ok fortran ', s
contains
  subroutine usleep_(us)
    use, intrinsic :: iso_c_binding
    integer, intent(in) :: us
    interface
      integer(c_int) function c_usleep(n) bind(c, name='usleep')
        import :: c_int
        integer(c_int), value :: n
      end function
    end interface
    integer(c_int) :: unused
    unused = c_usleep(int(us, c_int))
  end subroutine
end program
